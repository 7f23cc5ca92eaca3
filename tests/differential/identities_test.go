package differential

import (
	"testing"
)

// TestIdentities: the steps of a sequence name a uid after the step that has shown it first, and a version by what it is
// to the one that was shown before; the events of a watch name a version after the step that has written it.
func TestIdentities(t *testing.T) {
	_, k := widgets(t)
	shown := func(uid, version string) string {
		return `{"metadata":{"resourceVersion":"` + version + `","uid":"` + uid + `"}}`
	}
	events := func(versions ...string) string {
		list := ""
		for _, version := range versions {
			list += `,{"object":` + shown("u1", version) + `}`
		}
		return `{"events":[` + list[1:] + `]}`
	}
	steps := []struct{ name, body, want string }{
		{"list", `{"metadata":{"resourceVersion":"7"}}`, `{"metadata":{"resourceVersion":"<a version>"}}`},
		{"create", shown("u1", "8"), shown("<uid 1 of create>", "<a version>")},
		{"get", shown("u1", "8"), shown("<uid 1 of create>", "<the version before>")},
		{"put", shown("u1", "12"), shown("<uid 1 of create>", "<a later version>")},
		{"get the old", shown("u1", "8"), shown("<uid 1 of create>", "<an earlier version>")},
		{"create again", shown("u2", "9"), shown("<uid 1 of create again>", "<a version>")},
		{
			"watch", events("8", "12", "12", "13"),
			`{"events":[{"object":` + shown("<uid 1 of create>", "<the version of create>") + `},{"object":` + shown("<uid 1 of create>", "<the version of put>") +
				`},{"object":` + shown("<uid 1 of create>", "<the version of put>") + `},{"object":` + shown("<uid 1 of create>", "<a later version>") + `}]}`,
		},
	}
	whole := &answer{Code: 200}
	for _, step := range steps {
		whole.Steps = append(whole.Steps, &answer{Code: 200, Step: step.name, Body: decode(t, step.body)})
	}
	once := normalise(whole, k, nil)
	for i, a := range normalise(once, k, nil).Steps { // what was recorded is normalised again
		if got, want := literal(a.Body), literal(decode(t, steps[i].want)); got != want {
			t.Errorf("%s: %s, not %s", a.Step, got, want)
		}
	}
}

// TestIdentitiesOfWhatIsLeft: another uid after a delete is another one.
func TestIdentitiesOfWhatIsLeft(t *testing.T) {
	_, k := widgets(t)
	shown := func(uid string) *answer {
		return &answer{Code: 200, Body: decode(t, `{"metadata":{"uid":"`+uid+`"}}`)}
	}
	for uid, want := range map[string]string{"u1": "<uid 1 of the answer>", "u2": "<uid 1 of what is left>"} {
		a := shown("u1")
		a.After = shown(uid)
		if got := literal(normalise(a, k, nil).After.Body); got != `{"metadata":{"uid":"`+want+`"}}` {
			t.Errorf("after u1, %s is %s", uid, got)
		}
	}
}

// TestAges: a cell is an age if its column is one of ages, also in the events of a watch that have no columns.
func TestAges(t *testing.T) {
	_, k := widgets(t)
	const columns = `"columnDefinitions":[{"name":"Name"},{"name":"Age"}],`
	body := decode(t, `{"events":[{"object":{`+columns+`"rows":[{"cells":["5s","5s"]}]}},{"object":{"rows":[{"cells":["6s","6s"]}]}}]}`)
	want := decode(t, `{"events":[{"object":{`+columns+`"rows":[{"cells":["5s","<an age>"]}]}},{"object":{"rows":[{"cells":["6s","<an age>"]}]}}]}`)
	if got := literal(normalise(&answer{Code: 200, Body: body}, k, nil).Body); got != literal(want) {
		t.Errorf("%s, not %s", got, literal(want))
	}
}

// TestWhatIsStored: the version or the uid that a refusal names is the same to the comparison, also a uid that begins as a version does.
func TestWhatIsStored(t *testing.T) {
	for _, stored := range []string{"7", "12345678", "12345678-e8e3-4dec-967c-bf3a7e5ece93", "abcdef01-e8e3-4dec-967c-bf3a7e5ece93"} {
		text := "Precondition failed: UID in precondition: other, UID in object meta: "
		if got, want := (&normaliser{}).words(text+stored), text+"<what is stored>"; got != want {
			t.Errorf("%s becomes %q, want %q", stored, got, want)
		}
	}
}
