package differential

import (
	"encoding/json"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// normalise returns an answer in which what two servers must answer differently is replaced.
// sent is what the request sent: what the client has chosen is never replaced.
func normalise(a *answer, k *kind, sent map[string]any) *answer {
	return newIdentities().normalise(a, k, sent)
}

// normalise normalises an answer after those that have been normalised with the same names.
func (ids *identities) normalise(a *answer, k *kind, sent map[string]any) *answer {
	n := &normaliser{kind: k, sent: sent, answer: a.Body, now: a.At, generated: generatedIn(sent), ids: ids, step: a.Step}
	ids.meet(a.Step, a.Body, uidsIn(sent))
	if a.Body["events"] != nil {
		n.events = map[string]string{}
	}
	result := &answer{At: a.At, Code: a.Code, Text: n.words(a.Text), Headers: a.Headers, Step: a.Step}
	if a.Body != nil {
		result.Body, _ = n.value(a.Body, nil).(map[string]any)
		if raw, ok := a.Body["events"].([]any); ok {
			events, _ := result.Body["events"].([]any)
			result.Body["events"] = n.withoutRepeated(events, raw)
		}
	}
	for _, warning := range a.Warnings {
		result.Warnings = append(result.Warnings, n.words(warning))
	}
	for _, step := range a.Steps {
		result.Steps = append(result.Steps, ids.normalise(step, k, sent))
	}
	if a.After != nil {
		after := *a.After
		after.Step = whatIsLeft
		result.After = ids.normalise(&after, k, sent)
		result.After.Step = a.After.Step
	}
	return result
}

// whatIsLeft is in names what is read after a delete.
const whatIsLeft = "what is left"

// rule says what is replaced.
type rule struct {
	name  string // stands in the place of the value
	kind  string // of objects; empty: of all
	shape string // of the path; empty: anywhere
	// is reports whether the server has chosen the value; nil: whatever the client has
	// not sent.
	is func(n *normaliser, value any) bool
}

var rules = []rule{
	{name: "a token of pages", shape: "metadata.continue"},
	{name: "when the token expires", shape: "status.expirationTimestamp", is: isExpiration},
	{name: "an age", shape: "cells[]", is: isAge},
	{name: "an allocated address", kind: "v1 Service", shape: "cells[]", is: inServiceCIDR},
	{name: "a token", kind: "v1 ServiceAccount", shape: "status.token"},
	{name: "a creation time", shape: "metadata.creationTimestamp", is: isCreation},
	{name: "a deletion time", shape: "metadata.deletionTimestamp", is: isDeletion},
	{name: "a time of managed fields", shape: "metadata.managedFields[].time"},
	{name: "an allocated address", kind: "v1 Service", shape: "spec.clusterIP", is: inServiceCIDR},
	{name: "an allocated address", kind: "v1 Service", shape: "spec.clusterIPs[]", is: inServiceCIDR},
	{name: "an allocated port", kind: "v1 Service", shape: "spec.ports[].nodePort", is: isNodePort},
	{name: "an allocated port", kind: "v1 Service", shape: "spec.healthCheckNodePort", is: isNodePort},
	{name: "a token", kind: "v1 TokenRequest", shape: "status.token"},
	{name: "a generated name", shape: "metadata.name", is: isGenerated},
	{name: "a generated name", shape: "details.name", is: isGenerated},
	{name: "a generated name", kind: "v1 LimitRange", shape: "metadata.name"},
	{name: "a generated name", kind: "v1 LimitRange", shape: "details.name", is: isGeneratedUID},
}

var age = regexp.MustCompile(`^(\d+s|\d+y(\d+d)?)$`)

// columnsOfAges are those of tables whose cells count from a time until now.
var columnsOfAges = []string{"Age", "Last Schedule", "Duration", "Last Seen", "First Seen", "TimeAdded"}

func isAge(n *normaliser, value any) bool {
	text, _ := value.(string)
	column, _ := n.at[len(n.at)-1].(int)
	// The last cell of an IPAddress at kube-apiserver has no column.
	isOfAges := column >= len(n.columns) || slices.Contains(columnsOfAges, n.columns[column])
	return isOfAges && age.MatchString(text)
}

func inServiceCIDR(_ *normaliser, value any) bool {
	text, _ := value.(string)
	address, err := netip.ParseAddr(text)
	return err == nil && netip.MustParsePrefix(serviceCIDR).Contains(address)
}

// generatedEnd is what a server puts behind a generateName.
var generatedEnd = regexp.MustCompile(`^[bcdfghjklmnpqrstvwxz2456789]{5}$`)

func isGenerated(n *normaliser, value any) bool {
	prefix, _ := get(n.sent, path{"metadata", "generateName"})
	text, _ := prefix.(string)
	name, _ := value.(string)
	if text != "" && len(text) > maxGeneratedPrefix {
		text = text[:maxGeneratedPrefix]
	}
	end, ok := strings.CutPrefix(name, text)
	return text != "" && ok && generatedEnd.MatchString(end)
}

// maxGeneratedPrefix is how much of a generateName has room in a name.
const maxGeneratedPrefix = 58

// isCreation reports whether a value is a time, in whole seconds and in UTC, of the run.
func isCreation(n *normaliser, value any) bool {
	text, _ := value.(string)
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	return err == nil && n.now.Sub(t).Abs() < 24*time.Hour
}

// isDeletion reports whether a time is when an object has to be gone that was deleted in this run: its
// grace period after the delete.
func isDeletion(n *normaliser, value any) bool {
	text, _ := value.(string)
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	grace, _ := n.around["deletionGracePeriodSeconds"].(json.Number)
	seconds, _ := grace.Int64() // 0: there is none
	ago := n.now.Sub(t.Add(-time.Duration(seconds) * time.Second))
	return err == nil && ago > -time.Minute && ago < nowWithin
}

// isExpiration reports whether a token is good for as long as the answer says.
func isExpiration(n *normaliser, value any) bool {
	seconds, _ := get(n.answer, path{"spec", "expirationSeconds"})
	number, _ := seconds.(json.Number)
	wanted, err := number.Int64()
	text, _ := value.(string)
	t, timeErr := time.Parse(time.RFC3339, text)
	return err == nil && timeErr == nil && (t.Sub(n.now)-time.Duration(wanted)*time.Second).Abs() < time.Minute
}

// isNodePort reports whether a value is a port of the range, or one of those behind it, which
// kube-apiserver gives out in dry runs.
func isNodePort(_ *normaliser, value any) bool {
	number, _ := value.(json.Number)
	port, err := number.Int64()
	return err == nil && port >= 30000 && port < 33000
}

// uid is how a server writes one.
const uid = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

var wholeUID = regexp.MustCompile(`^` + uid + `$`)

// isGeneratedUID reports whether a value is a uid that a server has given in place of a name.
func isGeneratedUID(_ *normaliser, value any) bool {
	text, _ := value.(string)
	return wholeUID.MatchString(text)
}

// words are rules for parts of strings, wherever they stand.
var words = []struct {
	name    string
	pattern *regexp.Regexp
}{
	// Of a Job that is refused: the answer has no object to know the uid from.
	{`controller-uid":"<the uid>"`, regexp.MustCompile(`controller-uid":"` + uid + `"`)},
	{"batch.kubernetes.io/controller-uid=<the uid>", regexp.MustCompile(`batch\.kubernetes\.io/controller-uid=` + uid)},
	// Of a LimitRange without a name.
	{`LimitRange "<a generated name>"`, regexp.MustCompile(`LimitRange "` + uid + `"`)},
	// Of a table: the restarts of a pod.
	{"(<an age> ago)", regexp.MustCompile(`\((\d+[ydhms])+ ago\)`)},
	{"kube-api-access-*", regexp.MustCompile(`kube-api-access-[a-z0-9]{5}\b`)},
	// Where kube-apiserver's source makes the table of its kinds.
	{"", regexp.MustCompile(` in scheme "[^"]*"`)},
	// Some messages print metadata, and some of kube-apiserver's pointers.
	{`"time":"<a time>"`, regexp.MustCompile(`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)}, // of managed fields
	// What a patch has made of an object, with its uid and in an order of its own.
	{`Invalid value: <what the patch made>: `, regexp.MustCompile(`Invalid value: "\{(?:[^"\\]|\\.)*\\"(?:metadata|kind)\\"(?:[^"\\]|\\.)*": `)},
	// Of a Service that keeps its address.
	{`"<an allocated address>": expected an IP`, regexp.MustCompile(`"10\.96\.\d+\.\d+": expected an IP`)},
	// Of preconditions that do not hold.
	{"in record (<what is stored>)", regexp.MustCompile(`in record \([^)]*\)`)},
	{"in object meta: <what is stored>", regexp.MustCompile(`in object meta: (` + uid + `|\d+)\b`)}, // a uid may begin with eight decimal digits
	{"0xc*", regexp.MustCompile(`\b0xc[0-9a-f]{9}\b`)},
}

type normaliser struct {
	kind   *kind
	sent   map[string]any
	answer map[string]any
	now    time.Time
	around map[string]any // the object in which the value stands
	// generated matches names that the server may have made.
	generated *regexp.Regexp
	ids       *identities
	step      string            // which step's answer it is
	events    map[string]string // by uid, in the events of a watch: the version of the event before
	at        path              // of the value
	columns   []string          // the names of those of the table that was shown last
}

func (n *normaliser) value(value any, at path) any {
	switch value := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(value))
		n.lookAtColumns(value)
		for name, member := range value {
			if list, ok := member.([]any); ok && name == "managedFields" {
				member = n.withoutServer(list)
			}
			n.around = value
			result[name] = n.value(member, at.child(name))
			if list, ok := result[name].([]any); ok && name == "managedFields" && len(at) > 1 {
				result[name] = unordered(list)
			}
		}
		return result
	case []any:
		result := make([]any, len(value))
		for i, item := range value {
			result[i] = n.value(item, at.child(i))
		}
		return result
	case string:
		return n.leaf(n.words(value), at)
	case json.Number:
		return n.leaf(value, at)
	default:
		return value
	}
}

// writtenByServers are the kinds into whose status each server writes under a name of its own.
var writtenByServers = []string{"APIService", "FlowSchema", "ValidatingAdmissionPolicy"}

// serverManagers are these names.
var serverManagers = []any{"levelwire", "kube-apiserver", "api-priority-and-fairness-config-consumer-v1"}

// withoutServer returns entries of managedFields without those of the server itself, and without
// who has made the list of conditions: the client, if it was faster than the server.
func (n *normaliser) withoutServer(entries []any) []any {
	if !matchesKind(writtenByServers, n.kind.String()) {
		return entries
	}
	var others []any
	for _, entry := range entries {
		members, _ := entry.(map[string]any)
		if members["subresource"] == "status" {
			if slices.Contains(serverManagers, members["manager"]) {
				continue
			}
			entry = withoutMaker(members)
		}
		others = append(others, entry)
	}
	return others
}

// withoutMaker returns an entry of managedFields that does not own the list of conditions itself.
func withoutMaker(entry map[string]any) any {
	owned := path{"fieldsV1", "f:status", "f:conditions"}
	if _, ok := get(entry, append(owned, ".")); !ok {
		return entry
	}
	without, _, err := replaceAt(entry, append(owned, "."), func(any) (any, bool) { return nil, false })
	if err != nil {
		return entry
	}
	return without
}

func (n *normaliser) leaf(value any, at path) any {
	if value == "" {
		return value
	}
	if sent, ok := get(n.sent, inItem(at)); ok && literal(sent) == literal(value) {
		return value
	}
	shape := inShape(at.shape())
	text, isText := value.(string)
	if name := n.ids.uids[text]; isText && name != "" {
		return name
	}
	if isText && shape == "metadata.resourceVersion" {
		return n.version(text)
	}
	n.at = at
	for _, r := range rules {
		if (r.shape == "" || r.shape == shape) && (r.kind == "" || r.kind == n.kind.String()) && (r.is == nil || r.is(n, value)) {
			return "<" + r.name + ">"
		}
	}
	if isText && n.isNow(text) {
		if strings.Contains(text, ".") {
			return "<now, with its microseconds>"
		}
		return "<now>"
	}
	return value
}

// version names the version of the object in whose metadata it stands. Into those of some kinds a server
// writes at its own time.
func (n *normaliser) version(version string) string {
	uid, _ := n.around["uid"].(string)
	if settled[n.kind.Kind] != nil || n.kind.Kind == "FlowSchema" {
		uid = ""
	}
	if n.events != nil {
		return n.ids.eventVersion(n.events, uid, version)
	}
	return n.ids.version(n.step, uid, version)
}

// lookAtColumns keeps the names of the columns of a table. The events of a watch after the first do not have them.
func (n *normaliser) lookAtColumns(table map[string]any) {
	list, _ := table["columnDefinitions"].([]any)
	if len(list) == 0 {
		return
	}
	n.columns = nil
	for _, item := range list {
		column, _ := item.(map[string]any)
		name, _ := column["name"].(string)
		n.columns = append(n.columns, name)
	}
}

// inItem is inShape of a path.
func inItem(at path) path {
	if len(at) > 2 && (at[0] == "items" || at[0] == "rows" || at[0] == "events") {
		at = at[2:]
		if at[0] == "object" {
			at = at[1:]
		}
	}
	return at
}

// inShape is the shape of a place in an object that is an item of a list, a row of a table or what
// an event is about.
func inShape(shape string) string {
	for _, prefix := range []string{"events[].object.", "items[].", "rows[].object.", "rows[]."} {
		shape = strings.TrimPrefix(shape, prefix)
	}
	return shape
}

// isNow reports whether a string is the time of the answer, which a server has filled in.
func (n *normaliser) isNow(text string) bool {
	t, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && (len(text) == len("2006-01-02T15:04:05Z") || len(text) == len("2006-01-02T15:04:05.000000Z")) &&
		strings.HasSuffix(text, "Z") && n.now.Sub(t).Abs() < nowWithin
}

// nowWithin is how long ago an object may have been stored that is asked about.
const nowWithin = 20 * time.Minute

func (n *normaliser) words(text string) string {
	for _, w := range words {
		text = w.pattern.ReplaceAllString(text, w.name)
	}
	if before, after, ok := strings.Cut(text, applyErrors); ok && strings.HasPrefix(text, "failed to create typed patch object") {
		lines := strings.Split(after, "\n")
		slices.Sort(lines)
		text = before + applyErrors + strings.Join(lines, "\n")
	}
	text = exceeded.ReplaceAllStringFunc(text, sortExceeded)
	if n.generated != nil && !strings.Contains(text, generatedName) { // else it is from a recording, or has had its turn
		text = n.generated.ReplaceAllString(text, generatedName)
	}
	return text
}

// generatedName stands in the place of one.
const generatedName = "<a generated name>"

// applyErrors stands before what is wrong with an apply patch, in an order that is another one each time.
const applyErrors = "errors:\n"

// exceeded matches what the plugin LimitRanger finds wrong with an object, if that is more than one thing:
// kube-apiserver goes through its resources in an order that is another one each time.
var exceeded = regexp.MustCompile(`\[[^][]* per (Container|Pod|PersistentVolumeClaim) is [^][]*\]$`)

var otherLimit = regexp.MustCompile(`, ((?:minimum|maximum) \S+ usage|\S+ max limit to request ratio) per `)

func sortExceeded(list string) string {
	found := strings.Split(otherLimit.ReplaceAllString(strings.Trim(list, "[]"), "\n$1 per "), "\n")
	slices.Sort(found)
	return "[" + strings.Join(found, ", ") + "]"
}

// generatedIn matches names that a server may make of the generateName that was sent; nil: none was.
func generatedIn(sent map[string]any) *regexp.Regexp {
	prefix, _ := get(sent, path{"metadata", "generateName"})
	text, _ := prefix.(string)
	if text == "" {
		return nil
	}
	return regexp.MustCompile(regexp.QuoteMeta(text[:min(len(text), maxGeneratedPrefix)]) + `[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
}
