package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	widgetMade   = `{"metadata":{"name":"example"},"spec":{"size":1}}`
	negativeSize = `{"reason":"Invalid","message":"invalid: spec.size: negative","details":{"causes":[{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"negative"}]}}`
	otherPart    = `{"reason":"Invalid","message":"invalid: spec.size: negative","details":{"causes":[{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"below zero"}]}}`
	twoCauses    = `{"reason":"Invalid","message":"invalid","details":{"causes":[{"reason":"FieldValueRequired","field":"metadata.name"},{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"negative"}]}}`
	saidTwice    = `{"reason":"Invalid","message":"invalid: spec.size: negative","details":{"causes":[{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"negative"},{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"negative"}]}}`
	twoOtherWay  = `{"reason":"Invalid","message":"invalid","details":{"causes":[{"reason":"FieldValueInvalid","field":"spec.parts[1].size","message":"negative"},{"reason":"FieldValueRequired","field":"metadata.name"}]}}`
)

// inMap is a refusal because of members of a map.
func inMap(names ...string) string {
	var causes []string
	for _, name := range names {
		causes = append(causes, fmt.Sprintf(`{"reason":"FieldValueInvalid","field":"limits[%s]"}`, name))
	}
	return fmt.Sprintf(`{"reason":"Invalid","message":"invalid","details":{"causes":[%s]}}`, strings.Join(causes, ","))
}

// refusing is a refusal that prints a value.
func refusing(value string) string {
	return fmt.Sprintf(`{"reason":"Invalid","message":"invalid","details":{"causes":[{"reason":"FieldValueInvalid","field":"spec","message":"Invalid value: %s: no"}]}}`, value)
}

func TestCompare(t *testing.T) {
	_, k := widgets(t)
	for name, test := range map[string]struct {
		oursCode, judgeCode int
		ours, judge         string
		warnings            []string
		want                []string
	}{
		"the same":         {201, 201, widgetMade, widgetMade, nil, nil},
		"the same refusal": {422, 422, twoCauses, twoCauses, nil, nil},
		"accepted":         {201, 422, widgetMade, negativeSize, nil, []string{"accepted by ours only: spec.parts[].size FieldValueInvalid"}},
		"refused":          {422, 201, negativeSize, widgetMade, nil, []string{"refused by ours only: spec.parts[].size FieldValueInvalid"}},
		"for two reasons":  {201, 422, widgetMade, twoCauses, nil, []string{"accepted by ours only: metadata.name FieldValueRequired", "accepted by ours only: spec.parts[].size FieldValueInvalid"}},
		"another code":     {400, 422, `{"reason":"BadRequest","message":"bad"}`, negativeSize, nil, []string{"other code or reason: spec.parts[].size FieldValueInvalid"}},
		"a missing cause":  {422, 422, negativeSize, twoCauses, nil, []string{"other causes: missing metadata.name FieldValueRequired"}},
		"one too many":     {422, 422, twoCauses, negativeSize, nil, []string{"other causes: extra metadata.name FieldValueRequired"}},
		"said twice":       {422, 422, negativeSize, saidTwice, nil, []string{"other causes: repeated spec.parts[].size FieldValueInvalid"}},
		"both twice":       {422, 422, saidTwice, saidTwice, nil, nil},
		"twice by ours":    {422, 422, saidTwice, negativeSize, nil, []string{"other causes: extra spec.parts[].size FieldValueInvalid"}},
		"another order":    {422, 422, twoOtherWay, twoCauses, nil, []string{"other causes: order"}},
		"within a map":     {422, 422, inMap("a", "b"), inMap("b", "a"), nil, []string{"other causes: order within a map"}},
		"of another map":   {422, 422, inMap("a", "b"), strings.ReplaceAll(inMap("b", "a"), "limits[a]", "requests[a]"), nil, []string{"other causes: missing requests[] FieldValueInvalid", "other causes: extra limits[] FieldValueInvalid"}},
		"a refused value":  {422, 422, refusing(`{\"name\":\"x\",\"size\":1}`), refusing(`{\"Name\":\"x\",\"Size\":1,\"Mode\":null,\"Parts\":[]}`), nil, []string{"other message: an object as the refused value"}},
		"of another kind":  {422, 422, refusing(`{\"kind\":\"A\",\"ref\":{\"kind\":\"x\"}}`), refusing(`{\"Ref\":{\"Kind\":\"y\"}}`), nil, []string{"other message: another object as the refused value"}},
		"of one kind":      {422, 422, refusing(`{\"kind\":\"x\",\"name\":\"y\"}`), refusing(`{\"Kind\":\"x\",\"Name\":\"y\"}`), nil, []string{"other message: an object as the refused value"}},
		"an object's type": {422, 422, refusing(`{\"kind\":\"x\",\"metadata\":{\"name\":\"y\"}}`), refusing(`{\"name\":\"y\",\"Spec\":{\"A\":null}}`), nil, []string{"other message: an object as the refused value"}},
		"of a key":         {422, 422, inMap("a].x", "a].y"), inMap("a].y", "a].x"), nil, []string{"other causes: order"}},
		"another value":    {422, 422, refusing(`{\"name\":\"x\",\"size\":1}`), refusing(`{\"Name\":\"x\",\"Size\":2}`), nil, []string{"other message: another object as the refused value"}},
		"other words":      {422, 422, otherPart, negativeSize, nil, []string{"other message: spec.parts[].size FieldValueInvalid: negative"}},
		"no causes":        {404, 404, `{"reason":"NotFound","message":"no \"a\" 1"}`, `{"reason":"NotFound","message":"not \"a\" 1"}`, nil, []string{`other message: not "…" N`}},
		"another number":   {201, 201, widgetMade, `{"metadata":{"name":"example"},"spec":{"size":2}}`, nil, []string{"other object: spec.size differs"}},
		"a missing member": {201, 201, widgetMade, `{"metadata":{"name":"example"},"spec":{"size":1,"mode":"Fast"}}`, nil, []string{"other object: spec.mode missing"}},
		"an extra member":  {201, 201, `{"metadata":{"name":"example"},"spec":{"size":1,"mode":"Fast"}}`, widgetMade, nil, []string{"other object: spec.mode extra"}},
		"a longer list":    {201, 201, `{"spec":{"parts":[1,2]}}`, `{"spec":{"parts":[1]}}`, nil, []string{"other object: spec.parts differs"}},
		"managed fields":   {201, 201, `{"metadata":{"managedFields":[1]}}`, `{"metadata":{"managedFields":[2]}}`, nil, []string{"other object: metadata.managedFields"}},
		"their order":      {201, 201, `{"metadata":{"managedFields":[1,2]}}`, `{"metadata":{"managedFields":[2,1]}}`, nil, nil},
		"what follows":     {201, 201, `{"metadata":{"managedFields":[1]},"spec":1}`, `{"metadata":{"managedFields":[2]},"spec":2}`, nil, []string{"other object: spec differs"}},
		"no warning":       {201, 201, widgetMade, widgetMade, []string{`299 - "deprecated in 1.2"`}, []string{"other warnings: missing deprecated in N.N"}},
		"a template's":     {201, 201, `{"spec":{"template":{"spec":{"a":1}}}}`, `{"spec":{"template":{"spec":{"a":2}}}}`, nil, []string{"other object: (template).spec.a differs"}},
	} {
		t.Run(name, func(t *testing.T) {
			ours := &answer{Code: test.oursCode, Body: decode(t, test.ours)}
			judge := &answer{Code: test.judgeCode, Body: decode(t, test.judge), Warnings: test.warnings}
			var got []string
			for _, d := range compare(&request{verb: create, kind: k, base: small}, ours, judge) {
				got = append(got, fmt.Sprintf("%s: %s", d.class, d.at))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}

func TestNormalise(t *testing.T) {
	_, k := widgets(t)
	service := &kind{groupVersionKind: groupVersionKind{Version: "v1", Kind: "Service"}}
	limitRange := &kind{groupVersionKind: groupVersionKind{Version: "v1", Kind: "LimitRange"}}
	flowSchema := &kind{groupVersionKind: groupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		kind             *kind
		sent, body, want string
	}{
		"metadata": {
			k, `{}`,
			`{"metadata":{"uid":"1-2","creationTimestamp":"2026-01-02T03:04:05Z","resourceVersion":"7","managedFields":[{"manager":"a","time":"2026-01-02T03:04:05Z"}]}}`,
			`{"metadata":{"creationTimestamp":"<a creation time>","managedFields":[{"manager":"a","time":"<a time of managed fields>"}],"resourceVersion":"<a version>","uid":"<uid 1 of the answer>"}}`,
		},
		"what the client sent": {k, `{"metadata":{"uid":"1-2"}}`, `{"metadata":{"uid":"1-2"}}`, `{"metadata":{"uid":"1-2"}}`},
		"the uid elsewhere":    {k, `{}`, `{"metadata":{"uid":"1-2"},"spec":{"a":"1-2","b":"2-1"}}`, `{"metadata":{"uid":"<uid 1 of the answer>"},"spec":{"a":"<uid 1 of the answer>","b":"2-1"}}`},
		"a scheme":             {k, `{}`, `{"message":"no kind \"A\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""}`, `{"message":"no kind \"A\" is registered for version \"v1\""}`},
		"an address":           {service, `{}`, `{"spec":{"clusterIP":"10.96.1.2","clusterIPs":["10.96.1.2"]}}`, `{"spec":{"clusterIP":"<an allocated address>","clusterIPs":["<an allocated address>"]}}`},
		"no address":           {service, `{}`, `{"spec":{"clusterIP":"None"}}`, `{"spec":{"clusterIP":"None"}}`},
		"another kind's":       {k, `{}`, `{"spec":{"clusterIP":"10.96.1.2"}}`, `{"spec":{"clusterIP":"10.96.1.2"}}`},
		"a generated name":     {k, `{"metadata":{"generateName":"a-"}}`, `{"metadata":{"generateName":"a-","name":"a-x7bcd"}}`, `{"metadata":{"generateName":"a-","name":"<a generated name>"}}`},
		"a name":               {k, `{}`, `{"metadata":{"name":"a-x7"}}`, `{"metadata":{"name":"a-x7"}}`},
		"an unnamed one":       {limitRange, `{"metadata":{}}`, `{"metadata":{"name":"a-x7"}}`, `{"metadata":{"name":"<a generated name>"}}`},
		"a refused one":        {limitRange, `{"metadata":{}}`, `{"message":"LimitRange \"cb54d168-f7e7-4359-af29-5467af383476\" is invalid","details":{"name":"cb54d168-f7e7-4359-af29-5467af383476"}}`, `{"message":"LimitRange \"<a generated name>\" is invalid","details":{"name":"<a generated name>"}}`},
		"its own name":         {limitRange, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		"who wrote first": {
			flowSchema, `{}`,
			`{"metadata":{"managedFields":[{"manager":"kube-apiserver","subresource":"status"},{"manager":"a","subresource":"status","fieldsV1":{"f:status":{"f:conditions":{".":{},"k:1":{".":{}}}}}}]}}`,
			`{"metadata":{"managedFields":[{"manager":"a","subresource":"status","fieldsV1":{"f:status":{"f:conditions":{"k:1":{".":{}}}}}}]}}`,
		},
		"the uid of a refused": {k, `{}`, `{"message":"{\"controller-uid\":\"cb54d168-f7e7-4359-af29-5467af383476\"}: no"}`, `{"message":"{\"controller-uid\":\"<the uid>\"}: no"}`},
		"now":                  {k, `{}`, `{"a":"2026-01-02T03:05:05Z","b":"2020-01-02T03:05:05Z"}`, `{"a":"<now>","b":"2020-01-02T03:05:05Z"}`},
		"a token volume":       {k, `{}`, `{"a":["kube-api-access-x7y8z"]}`, `{"a":["kube-api-access-*"]}`},
		"a time in a message":  {k, `{}`, `{"message":"[{\"time\":\"2026-11-27T01:10:54Z\"}]: no"}`, `{"message":"[{\"time\":\"<a time>\"}]: no"}`},
		"limits":               {k, `{}`, `{"message":"forbidden: [minimum cpu usage per Pod is 2, but request is 1, maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio per Pod is 2, but provided ratio is 3.0]"}`, `{"message":"forbidden: [cpu max limit to request ratio per Pod is 2, but provided ratio is 3.0, maximum cpu usage per Container is 1, but limit is 2, minimum cpu usage per Pod is 2, but request is 1]"}`},
		"a pointer":            {k, `{}`, `{"message":"at 0xc000123abc: no"}`, `{"message":"at 0xc*: no"}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := normalise(&answer{At: now, Code: 201, Body: decode(t, test.body)}, test.kind, decode(t, test.sent))
			if got, want := literal(a.Body), literal(decode(t, test.want)); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		})
	}
}

func TestDeclarations(t *testing.T) {
	list, err := parseDeclarations([]byte(`
- {kinds: [Widget], class: other object, at: 'spec\..* extra', field: a, why: "no gates", notices: "a field"}
- {verbs: [delete], left: true, request: 'dryRun', except: 'body', field: a, why: "a dry run", notices: "it stays"}
- {class: other message, judge: '^no ', field: a, why: "ours says more", notices: "other words"}
`))
	if err != nil {
		t.Fatal(err)
	}
	for at, test := range map[string]struct {
		difference difference
		want       *declaration
	}{
		"by kind":        {difference{kind: "example.com/v1 Widget", class: otherObject, at: "spec.a extra"}, list[0]},
		"another kind":   {difference{kind: "example.com/v1 OtherWidget", class: otherObject, at: "spec.a extra"}, nil},
		"another place":  {difference{kind: "example.com/v1 Widget", class: otherObject, at: "spec.a extra too"}, nil},
		"another class":  {difference{kind: "example.com/v1 Widget", class: oursAccepts, at: "spec.a extra"}, nil},
		"by the message": {difference{kind: "v1 Pod", class: otherMessage, judge: "no way"}, list[2]},
		"what is left":   {difference{verb: deleteOne, class: otherObject, at: afterIt + "spec.a extra", request: "delete dryRun"}, list[1]},
		"the answer":     {difference{verb: deleteOne, class: otherObject, at: "spec.a extra", request: "delete dryRun"}, nil},
		"but for":        {difference{verb: deleteOne, class: otherObject, at: afterIt + "spec.a extra", request: "delete dryRun body"}, nil},
	} {
		if got := list.find(&test.difference); got != test.want {
			t.Errorf("%s: %v", at, got)
		}
	}
	for wrong, about := range map[string]string{
		`[{class: other object, at: a}]`:               "say which field",
		`[{class: odd, field: a, why: a, notices: b}]`: "the class",
		`[{at: '(', field: a, why: a, notices: b}]`:    "missing",
		`[{place: a, field: a, why: a, notices: b}]`:   "place",
	} {
		if _, err := parseDeclarations([]byte(wrong)); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := parseDeclarations(declaredYAML); err != nil {
		t.Errorf("declared.yaml: %v", err)
	}
}

// TestReport: a request counts once, whatever differs, and not for what is declared.
func TestReport(t *testing.T) {
	_, k := widgets(t)
	declared, err := parseDeclarations([]byte(`[{at: known, field: a, why: a, notices: b}, {at: gone, field: a, why: a, notices: b}]`))
	if err != nil {
		t.Fatal(err)
	}
	first, second := &request{verb: create, kind: k, base: small}, &request{verb: create, kind: k, base: full}
	r := newReport()
	r.add(first, []difference{
		{request: first.String(), kind: k.String(), class: otherObject, at: "a"},
		{request: first.String(), kind: k.String(), class: otherObject, at: "b"},
	}, declared)
	r.add(second, []difference{{request: second.String(), kind: k.String(), class: otherObject, at: "known"}}, declared)
	if r.total() != 2 || r.undeclared() != 1 || len(r.groups) != 2 || r.byKind[k.String()][otherObject] != 1 {
		t.Errorf("%d requests, %d differ, in %d groups: %v", r.total(), r.undeclared(), len(r.groups), r.byKind)
	}
	if unused := r.unused(declared); len(unused) != 1 || unused[0].At != "gone" {
		t.Errorf("unused: %v", unused)
	}
	var text strings.Builder
	r.write(&text, 1)
	for _, want := range []string{"2 requests, 1 answered differently", "2 groups", "and 1 smaller groups", "create example.com/v1 Widget small"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, text.String())
		}
	}
}

// TestGates: the gates that a comparison can open are those that declarations name.
func TestGates(t *testing.T) {
	list, err := parseDeclarations([]byte(`
- {field: a, why: "B2 and A: there are no feature gates", notices: "a field"}
- {field: b, why: "C: who writes a field that kube-apiserver drops owns it there ever after", notices: "an owner"}
- {field: c, why: "there are no feature gates", notices: "a field"}
- {field: d, why: "A: there are no feature gates", notices: "a field"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list.gates(), []string{"A", "B2", "C"}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
