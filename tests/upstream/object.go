package upstream

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// object is one of the objects at the end of a flow, without what each server or component chooses.
type object struct {
	name string // kind and name
	text string // indented JSON
}

// readObjects reads what kubectl get -o json prints, a list or one object, in an order that does not depend on names that were generated.
func readObjects(printed []byte) ([]object, error) {
	var content struct {
		Metadata struct{ Name string }
		Items    []map[string]any
	}
	if err := json.Unmarshal(printed, &content); err != nil {
		return nil, err
	}
	if content.Metadata.Name != "" { // a list has none
		content.Items = make([]map[string]any, 1)
		if err := json.Unmarshal(printed, &content.Items[0]); err != nil {
			return nil, err
		}
	}
	objects := make([]object, 0, len(content.Items))
	for _, item := range content.Items {
		normal, _ := normalise("", item).(map[string]any)
		metadata, _ := normal["metadata"].(map[string]any)
		if prefix, ok := metadata["generateName"].(string); ok {
			metadata["name"] = prefix + "*"
		}
		if metadata["name"] == "kube-root-ca.crt" { // the server publishes it while no controller manager has its lease, as when that was killed
			delete(metadata, "annotations")
			delete(metadata, "managedFields")
		}
		text, err := json.MarshalIndent(normal, "", "  ")
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{fmt.Sprint(normal["kind"], " ", metadata["name"]), string(text)})
	}
	slices.SortFunc(objects, func(a, b object) int { return strings.Compare(a.name+a.text, b.name+b.text) })
	return objects, nil
}

// chosen are the members whose values a server or a component chooses, and that say nothing about what it did.
var chosen = map[string]string{
	"uid": "UID", "resourceVersion": "VERSION", "nodeName": "NODE", "containerID": "ID", "imageID": "ID",
	"controller-uid": "UID", "batch.kubernetes.io/controller-uid": "UID", "time": "TIME",
}

// serverManagers are the names by which the servers themselves write.
var serverManagers = []string{"levelwire", "kube-apiserver"}

// words are what is chosen within strings, whatever member has them.
var words = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`\b(\d{1,3}\.){3}\d{1,3}\b`), "ADDRESS"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-*"}, // the end of a generated name
	{regexp.MustCompile(`-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----`), "CERTIFICATE"},
}

// normalise returns a value of a member without what is chosen.
func normalise(member string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			delete(value, key)
			value[inWords(key)] = normalise(key, inner)
		}
	case []any:
		if member == "managedFields" {
			value = slices.DeleteFunc(value, func(entry any) bool { return !ownsMore(entry) })
		}
		for i, inner := range value {
			value[i] = normalise(member, inner)
		}
		if member == "managedFields" || member == "conditions" {
			slices.SortFunc(value, func(a, b any) int { return strings.Compare(asText(a), asText(b)) })
		}
		return value // which may be shorter
	case string:
		if name, ok := chosen[member]; ok && value != "" {
			return name
		}
		if member == "manager" && slices.Contains(serverManagers, value) {
			return "SERVER"
		}
		return inWords(value)
	}
	return value
}

// ownsMore takes the owner of a condition's time away: it is whoever wrote the condition in another second
// than the writer before. It reports whether the entry of managedFields is left with anything.
func ownsMore(entry any) bool {
	of, _ := entry.(map[string]any)
	fields, _ := of["fieldsV1"].(map[string]any)
	var prune func(fields map[string]any)
	prune = func(fields map[string]any) {
		for name, inner := range fields {
			parts, _ := inner.(map[string]any)
			had := len(parts) > 0
			prune(parts)
			if name == "f:lastTransitionTime" || had && len(parts) == 0 {
				delete(fields, name)
			}
		}
	}
	prune(fields)
	return len(fields) > 0
}

func inWords(text string) string {
	for _, word := range words {
		text = word.pattern.ReplaceAllString(text, word.name)
	}
	return text
}

func asText(value any) string {
	text, _ := json.Marshal(value) // it was read from JSON
	return string(text)
}

// differences compares the objects at the end of a flow on two servers.
func differences(ours, theirs []object) []string {
	var found []string
	left := slices.Clone(theirs)
	for _, o := range ours {
		same := slices.Index(left, o)
		if same >= 0 {
			left = slices.Delete(left, same, same+1)
			continue
		}
		similar := slices.IndexFunc(left, func(other object) bool { return other.name == o.name && !slices.Contains(ours, other) })
		if similar < 0 {
			similar = slices.IndexFunc(left, func(other object) bool { return other.name == o.name })
		}
		if similar < 0 {
			found = append(found, o.name+": only on Levelwire")
			continue
		}
		found = append(found, o.name+":\n"+lineDifference(o.text, left[similar].text))
		left = slices.Delete(left, similar, similar+1)
	}
	for _, o := range left {
		found = append(found, o.name+": only on kube-apiserver")
	}
	return found
}

// lineDifference names the lines that only one of two texts has.
func lineDifference(ours, theirs string) string {
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	var text strings.Builder
	for _, side := range []struct {
		name        string
		lines, less []string
	}{{"Levelwire", a, b}, {"kube-apiserver", b, a}} {
		count := map[string]int{}
		for _, line := range side.less {
			count[line]++
		}
		for _, line := range side.lines {
			if count[line]--; count[line] < 0 {
				fmt.Fprintf(&text, "    only %s: %s\n", side.name, strings.TrimSpace(line))
			}
		}
	}
	return text.String()
}
