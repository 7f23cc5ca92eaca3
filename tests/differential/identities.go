package differential

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// identities gives names to the uids and the versions that a server chooses. The names say what two servers
// must agree about: whether a uid is one that was shown before, and whether a version is a later one. The
// steps of a sequence have them together.
type identities struct {
	uids     map[string]string    // the names
	found    map[string]int       // by step: how many
	versions map[string]string    // by uid: which one was shown last
	written  map[[2]string]string // by uid and version: the step that has shown it first
}

func newIdentities() *identities {
	return &identities{uids: map[string]string{}, found: map[string]int{}, versions: map[string]string{}, written: map[[2]string]string{}}
}

// meet names the uids of an answer that have no name yet, after the step that shows them. What the client has chosen stays
// as it is.
func (ids *identities) meet(step string, body map[string]any, chosen []string) {
	for _, uid := range uidsIn(body) {
		if ids.uids[uid] != "" || isNamed(uid) || slices.Contains(chosen, uid) {
			continue
		}
		ids.found[step]++
		ids.uids[uid] = fmt.Sprintf("<uid %d of %s>", ids.found[step], cmp.Or(step, theAnswer))
	}
}

// theAnswer is in names what is no step of a sequence.
const theAnswer = "the answer"

// isNamed reports whether a value is a name that stands in the place of another, as in a recording.
func isNamed(text string) bool { return strings.HasPrefix(text, "<") }

// version names the version of an object: what it is to the one that was shown before. uid is empty for that
// of a list, which other objects move on, and so nothing is said of it.
func (ids *identities) version(step, uid, version string) string {
	if isNamed(version) {
		return version
	}
	if uid == "" {
		return aVersion
	}
	before := ids.versions[uid]
	ids.versions[uid] = version
	if ids.written[[2]string{uid, version}] == "" {
		ids.written[[2]string{uid, version}] = cmp.Or(step, theAnswer)
	}
	return relation(before, version)
}

// eventVersion names the version of an object in the events of a watch, which begin anew: by the step that
// has shown it, or by what it is to that of the event before.
func (ids *identities) eventVersion(events map[string]string, uid, version string) string {
	if isNamed(version) {
		return version
	}
	if uid == "" {
		return aVersion
	}
	before := events[uid]
	events[uid] = version
	if step := ids.written[[2]string{uid, version}]; step != "" {
		return "<the version of " + step + ">"
	}
	return relation(before, version)
}

// aVersion is one of which nothing is known to compare it with.
const aVersion = "<a version>"

func relation(before, version string) string {
	was, errBefore := strconv.ParseInt(before, 10, 64)
	is, err := strconv.ParseInt(version, 10, 64)
	switch {
	case before == "":
		return aVersion
	case errBefore != nil || err != nil:
		return version // is none
	case is == was:
		return "<the version before>"
	case is > was:
		return "<a later version>"
	}
	return "<an earlier version>"
}

// uidsIn returns the uids in a value, in an order that depends on their places only.
func uidsIn(value any) (uids []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(value) {
			if text, ok := value[name].(string); ok && name == "uid" && text != "" {
				uids = append(uids, text)
			}
			uids = append(uids, uidsIn(value[name])...)
		}
	case []any:
		for _, item := range value {
			uids = append(uids, uidsIn(item)...)
		}
	}
	return uids
}
