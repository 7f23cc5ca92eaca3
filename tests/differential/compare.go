package differential

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// class is a kind of difference between two answers.
type class string

// The classes, the worst first.
const (
	oursAccepts   class = "accepted by ours only"
	oursRefuses   class = "refused by ours only"
	otherCode     class = "other code or reason"
	otherCauses   class = "other causes"
	otherObject   class = "other object"
	otherWarnings class = "other warnings"
	otherMessage  class = "other message"
	otherHeaders  class = "other headers"
)

var classes = []class{oursAccepts, oursRefuses, otherCode, otherCauses, otherObject, otherWarnings, otherMessage, otherHeaders}

// difference is one way in which two answers to a request differ.
type difference struct {
	request string
	step    string // of a sequence; of another request empty
	kind    string
	verb    string
	class   class
	at      string // the shape of a path, and what is there
	ours    string
	judge   string
}

// compare returns the differences between two normalised answers.
func compare(r *request, ours, judge *answer) []difference {
	c := &comparison{request: r.String(), kind: r.kind.String(), verb: r.verb}
	switch {
	case ours.accepted() && !judge.accepted():
		for _, at := range refusedFor(judge) {
			c.add(oursAccepts, at, "accepted", describe(judge))
		}
	case !ours.accepted() && judge.accepted():
		for _, at := range refusedFor(ours) {
			c.add(oursRefuses, at, describe(ours), "accepted")
		}
	case ours.accepted():
		if ours.Code != judge.Code {
			c.add(otherCode, "", describe(ours), describe(judge))
		}
		c.objects(ours.Body, judge.Body)
		if ours.Text != judge.Text {
			c.add(otherObject, "no object", ours.Text, judge.Text)
		}
	case ours.Code != judge.Code || ours.text("reason") != judge.text("reason"):
		c.add(otherCode, refusedFor(judge)[0], describe(ours), describe(judge))
	default:
		c.refusals(ours, judge)
	}
	if ours.accepted() == judge.accepted() { // others follow from that
		c.warnings(ours.Warnings, judge.Warnings)
	}
	if judge.Text != brokenOff {
		c.headers(ours.Headers, judge.Headers)
	}
	c.found = append(c.found, compareSteps(r, ours, judge)...)
	if ours.After != nil && judge.After != nil {
		for _, d := range compare(r, ours.After, judge.After) {
			d.at = afterIt + d.at
			c.found = append(c.found, d)
		}
	}
	return c.found
}

// afterIt stands before the place of a difference in what a delete has left.
const afterIt = "after it: "

// asked is the request, with the step.
func (d *difference) asked() string {
	if d.step == "" {
		return d.request
	}
	return d.request + " [" + d.step + "]"
}

type comparison struct {
	request, kind, verb string
	found               []difference
}

func (c *comparison) add(class class, at, ours, judge string) {
	c.found = append(c.found, difference{c.request, "", c.kind, c.verb, class, at, ours, judge})
}

// describe is a refusal in a line.
func describe(a *answer) string {
	if a.accepted() {
		return fmt.Sprint(a.Code)
	}
	return fmt.Sprintf("%d %s: %s%s", a.Code, a.text("reason"), a.text("message"), a.Text)
}

// refusedFor returns what a refusal is about: the field and reason of each of its causes, or its
// message.
func refusedFor(a *answer) []string {
	var list []string
	for _, cause := range a.causes() {
		if at := cause.shape(); !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	if len(list) == 0 {
		list = append(list, erase(fmt.Sprintf("%d %s %s%s", a.Code, a.text("reason"), a.text("message"), a.Text)))
	}
	return list
}

// once returns the judge's causes without those that it says again, which are differences of their own
// if ours says nothing twice.
func (c *comparison) once(mine, theirs []cause) []cause {
	if len(distinctCauses(mine)) < len(mine) {
		return theirs
	}
	first := distinctCauses(theirs)
	_, more := split(theirs, first)
	for _, again := range more {
		c.add(otherCauses, "repeated "+again.shape(), list(mine), list(theirs))
	}
	return first
}

func distinctCauses(causes []cause) []cause {
	var first []cause
	for _, cause := range causes {
		if !slices.Contains(first, cause) {
			first = append(first, cause)
		}
	}
	return first
}

// shape is the place and reason of a cause.
func (c cause) shape() string { return eraseIndexes(c.Field) + " " + c.Reason }

var (
	inQuotes  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	inIndex   = regexp.MustCompile(`\[[^\]]*\]`)
	digits    = regexp.MustCompile(`[0-9]+`)
	structs   = regexp.MustCompile(`(Go struct field) \S+`)
	kindNames = regexp.MustCompile(`\b[A-Z][A-Za-z]+ in version "(?:[^"]*)" cannot be handled as a [A-Z][A-Za-z]+`)
	templates = regexp.MustCompile(`^((?:items\[\]\.|events\[\]\.object\.)?(?:rows\[\]\.object\.)?)(?:spec\.jobTemplate\.spec\.template|spec\.template|template)\.(spec|metadata)\b`)
)

// erase removes what tells two messages of the same kind apart.
func erase(message string) string {
	message = structs.ReplaceAllString(message, "$1 …")
	message = kindNames.ReplaceAllString(message, "… cannot be handled as …")
	return digits.ReplaceAllString(inQuotes.ReplaceAllString(message, `"…"`), "N")
}

// eraseIndexes removes indexes and keys of a field, and where a pod's template stands.
func eraseIndexes(field string) string {
	field = inIndex.ReplaceAllString(field, "[]")
	return templates.ReplaceAllString(field, "$1(template).$2")
}

// refusals compares the causes of two refusals, and then their words.
func (c *comparison) refusals(ours, judge *answer) {
	mine, theirs := ours.causes(), c.once(ours.causes(), judge.causes())
	shared, missing := split(theirs, mine)
	ofMine, extra := split(mine, theirs)
	for _, cause := range missing {
		c.add(otherCauses, "missing "+cause.shape(), list(mine), list(theirs))
	}
	for _, cause := range extra {
		c.add(otherCauses, "extra "+cause.shape(), list(mine), list(theirs))
	}
	said := false
	for i := range shared {
		if ofMine[i].Field != shared[i].Field || ofMine[i].Reason != shared[i].Reason {
			at := "order"
			if slices.Equal(sortedInMaps(ofMine), sortedInMaps(shared)) {
				at = "order within a map"
			}
			c.add(otherCauses, at, list(mine), list(theirs))
			return
		}
		said = c.words(shared[i].shape()+": ", ofMine[i].Message, shared[i].Message) || said
	}
	if len(missing)+len(extra) > 0 {
		return // the rest follows from that
	}
	if !said { // the message has those of all causes
		c.words("", ours.text("message")+ours.Text, judge.text("message")+judge.Text)
	}
	c.details(ours, judge)
}

// words compares two messages, and reports whether they say something else. If kube-apiserver prints a
// value with the names that its fields have inside, the value is a difference of its own.
func (c *comparison) words(at, ours, judge string) (other bool) {
	switch {
	case ours == judge:
		return false
	case internalNames.MatchString(judge) && rewriteValues(ours, inOneWord) == rewriteValues(judge, inOneWord):
		at := "an object as the refused value"
		if rewriteValues(ours, inLeaves) != rewriteValues(judge, inLeaves) {
			at = "another object as the refused value"
		}
		c.add(otherMessage, at, ours, judge)
		return false
	}
	c.add(otherMessage, at+erase(judge), ours, judge)
	return true
}

var (
	internalNames = regexp.MustCompile(` value: \[?\{(?:"[a-z]\w*":.*)?"[A-Z]\w*":`)
	printedValue  = regexp.MustCompile(` value: [\[{]`)
)

// rewriteValues writes the objects and lists that a message prints as refused values in another way.
func rewriteValues(message string, write func(value any) string) string {
	var b strings.Builder
	for {
		found := printedValue.FindStringIndex(message)
		if found == nil {
			return b.String() + message
		}
		at := found[1] - 1 // where the value begins
		b.WriteString(message[:at])
		message = message[at:]
		decoder := json.NewDecoder(strings.NewReader(message))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return b.String() + message // it is no JSON
		}
		b.WriteString(write(value))
		message = message[decoder.InputOffset():]
	}
}

func inOneWord(any) string { return "…" }

func inLeaves(value any) string { return strings.Join(leaves("", withoutType(value)), " ") }

// leaves are the strings, numbers and booleans of a value, each with the name of the member that it is of, in small letters.
// Left out is what is empty, where a member stands, and the order of a list: the internal types, which kube-apiserver
// prints, have names in Go's alphabet, print what is empty, too, and have other structs around some members.
func leaves(name string, value any) (list []string) {
	switch value := value.(type) {
	case map[string]any:
		for member, of := range value {
			member = strings.ToLower(member)
			list = append(list, leaves(cmp.Or(externalNames[member], member), of)...)
		}
	case []any:
		for _, item := range value {
			list = append(list, leaves(name, item)...)
		}
	default:
		if !isEmpty(value) {
			list = append(list, name+"="+literal(value))
		}
	}
	slices.Sort(list)
	return list
}

// withoutType removes the type of an object, or of each of a list, which internal types do not print. The kind
// of a reference stays.
func withoutType(value any) any {
	switch value := value.(type) {
	case map[string]any:
		if value["metadata"] == nil {
			return value
		}
		value = copyMembers(value)
		delete(value, "kind")
		delete(value, "apiVersion")
		return value
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = withoutType(item)
		}
		return list
	}
	return value
}

// externalNames are the names of members that internal types have under another one.
var externalNames = map[string]string{
	"deprecatedserviceaccount": "serviceaccount", "endpointsname": "endpoints", "datadiskuri": "diskuri",
	"cephmonitors": "monitors", "rbdimage": "image", "rbdpool": "pool", "radosuser": "user",
}

// isEmpty reports whether Go would leave a member out that has omitempty.
func isEmpty(leaf any) bool {
	return leaf == nil || leaf == "" || leaf == false || leaf == json.Number("0")
}

// sortedInMaps returns causes in which those that follow each other and are about members of the same map have the order of
// their keys: kube-apiserver goes through a map in an order that chance decides.
func sortedInMaps(causes []cause) []string {
	causes = slices.Clone(causes)
	for i := 0; i < len(causes); {
		in, _ := mapOf(causes[i].Field)
		end := i + 1
		for end < len(causes) && in != "" {
			if other, _ := mapOf(causes[end].Field); other != in {
				break
			}
			end++
		}
		slices.SortStableFunc(causes[i:end], func(a, b cause) int {
			_, x := mapOf(a.Field)
			_, y := mapOf(b.Field)
			return strings.Compare(x, y)
		})
		i = end
	}
	var lines []string
	for _, c := range causes {
		lines = append(lines, c.Field+" "+c.Reason)
	}
	return lines
}

// mapOf returns the field of the map of which a field is a member, or is in one, and the last key; "": it is in none.
func mapOf(field string) (in, key string) {
	keys := mapKey.FindAllStringIndex(field, -1)
	if keys == nil {
		return "", ""
	}
	last := keys[len(keys)-1]
	return field[:last[0]], field[last[0]:last[1]]
}

var mapKey = regexp.MustCompile(`\[[^\]\d][^\]]*\]`)

// details compares what else stands in a Status, and in its details.
func (c *comparison) details(ours, judge *answer) {
	for _, name := range []string{"apiVersion", "kind", "metadata", "status", "code"} {
		if a, b := literal(ours.Body[name]), literal(judge.Body[name]); a != b {
			c.add(otherMessage, "the Status: "+name, a, b)
		}
	}
	mine, _ := ours.Body["details"].(map[string]any)
	theirs, _ := judge.Body["details"].(map[string]any)
	mine, theirs = copyMembers(mine), copyMembers(theirs)
	delete(mine, "causes")
	delete(theirs, "causes")
	if a, b := literal(mine), literal(theirs); a != b {
		c.add(otherMessage, "details", a, b)
	}
}

// split returns the causes of a list that another list has, too, and those that it lacks, by field
// and reason.
func split(list, other []cause) (shared, rest []cause) {
	count := map[[2]string]int{}
	for _, c := range other {
		count[[2]string{c.Field, c.Reason}]++
	}
	for _, c := range list {
		key := [2]string{c.Field, c.Reason}
		if count[key]--; count[key] < 0 {
			rest = append(rest, c)
		} else {
			shared = append(shared, c)
		}
	}
	return shared, rest
}

func list(causes []cause) string {
	var lines []string
	for _, c := range causes {
		lines = append(lines, fmt.Sprintf("%s %s: %s", c.Field, c.Reason, c.Message))
	}
	return strings.Join(lines, "; ")
}

// warnings compares the texts of Warning headers, each of which stands for itself.
func (c *comparison) warnings(ours, judge []string) {
	mine, theirs := texts(ours), texts(judge)
	before := len(c.found)
	for _, text := range theirs {
		if !slices.Contains(mine, text) {
			c.add(otherWarnings, "missing "+erase(text), strings.Join(mine, "; "), strings.Join(theirs, "; "))
		}
	}
	for _, text := range mine {
		if !slices.Contains(theirs, text) {
			c.add(otherWarnings, "extra "+erase(text), strings.Join(mine, "; "), strings.Join(theirs, "; "))
		}
	}
	if len(c.found) == before && !slices.Equal(ours, judge) {
		c.add(otherWarnings, "order", strings.Join(ours, "; "), strings.Join(judge, "; "))
	}
}

// texts returns what Warning headers say: 299 - "text".
func texts(warnings []string) []string {
	var list []string
	for _, w := range warnings {
		if text, err := strconv.Unquote(strings.TrimPrefix(w, "299 - ")); err == nil {
			w = text
		}
		list = append(list, w)
	}
	return list
}

// objects compares the objects that came back. managedFields follow from the rest of an
// object, so that they are compared only if nothing else differs.
func (c *comparison) objects(ours, judge map[string]any) {
	before := len(c.found)
	mine, theirs := withoutManagedFields(ours), withoutManagedFields(judge)
	c.values(mine, theirs, nil)
	if len(c.found) > before {
		return
	}
	at := path{"metadata", "managedFields"}
	a, _ := get(ours, at)
	b, _ := get(judge, at)
	if a, b := literal(unordered(a)), literal(unordered(b)); a != b {
		c.add(otherObject, at.String(), a, b)
	}
}

// unordered returns the entries of managedFields in an order of their own: theirs depends on whether
// two writes, as of a client and of the server itself, were in the same second.
func unordered(entries any) any {
	list, ok := entries.([]any)
	if !ok {
		return entries
	}
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(literal(a), literal(b)) })
}

func withoutManagedFields(object map[string]any) map[string]any {
	at := path{"metadata", "managedFields"}
	if _, ok := get(object, at); !ok {
		return object
	}
	result, _, err := replaceAt(object, at, func(any) (any, bool) { return nil, false })
	if err != nil {
		return object
	}
	return result.(map[string]any)
}

func (c *comparison) values(ours, judge any, at path) {
	switch judge := judge.(type) {
	case map[string]any:
		if mine, ok := ours.(map[string]any); ok {
			c.members(mine, judge, at)
			return
		}
	case []any:
		if mine, ok := ours.([]any); ok && len(mine) == len(judge) {
			for i := range mine {
				c.values(mine[i], judge[i], itemOf(at, i, judge[i]))
			}
			return
		}
	}
	if a, b := literal(ours), literal(judge); a != b {
		c.add(otherObject, eraseIndexes(at.shape())+" differs", a, b)
	}
}

// itemOf is the path of an item of a list. A bookmark among events has a place of its own: of its object
// only the version counts.
func itemOf(at path, i int, item any) path {
	event, _ := item.(map[string]any)
	if len(at) == 1 && at[0] == "events" && event["type"] == "BOOKMARK" {
		return path{"bookmarks", i}
	}
	return at.child(i)
}

func (c *comparison) members(ours, judge map[string]any, at path) {
	for _, name := range sortedKeys(judge) {
		mine, ok := ours[name]
		if !ok {
			c.add(otherObject, eraseIndexes(at.child(name).shape())+" missing", absent, literal(judge[name]))
			continue
		}
		c.values(mine, judge[name], at.child(name))
	}
	for _, name := range sortedKeys(ours) {
		if _, ok := judge[name]; !ok {
			c.add(otherObject, eraseIndexes(at.child(name).shape())+" extra", literal(ours[name]), absent)
		}
	}
}
