package differential

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the page of declared differences anew")

// page shows users what is declared.
const page = "../../docs/users/differences.md"

// TestPageOfDifferences: the page says what the comparison is told to let stand, and nothing else.
func TestPageOfDifferences(t *testing.T) {
	declared, err := parseDeclarations(declaredYAML)
	if err != nil {
		t.Fatal(err)
	}
	want := markdown(declared)
	if *rewrite {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what tests/differential/declared.yaml says: go test ./tests/differential -run TestPageOfDifferences -rewrite", page)
	}
}

const introduction = `# What is answered differently from kube-apiserver

[The comparison](../contributors/differential.md) asks this server and kube-apiserver 1.37.2 the same: creates, updates, patches, deletes and writes of
subresources, with one field or two set to odd values, and sequences of writes, reads and watches of one object. It compares code, reason, causes, message,
object, warnings and headers. The %d rows below stand on purpose; %d of them come from feature gates. Please report any other difference as a fault.

**Does it affect my program?** Most likely not, if it uses only fields that kube-apiserver serves by default. Look for yours if it deletes collections with
a resourceVersion or with a body beside a dryRun in the query, deletes all CustomResourceDefinitions at once, compares managedFields, or reads the text of
errors.

**Known, and not below:** kinds on which nothing here acts ([compatibility](compatibility.md)), [admission plugins](../operators/admission-plugins.md),
[custom resources](custom-resources.md) and the last column of [validation](validation.md). A watch goes on after a restart of the server, where
kube-apiserver answers 410; one from a version that does not come within 5 seconds ends with an error, where kube-apiserver's waits without an end.

**Not compared:** requests of users who may not do everything; fields of union members that no object of the comparison has; exec, attach, log, portforward and
proxy; sequences of FlowSchemas, and how the statuses of APIServices, CustomResourceDefinitions and ValidatingAdmissionPolicies are owned, into which a
server itself writes. Every request is allowed (kube-apiserver runs with --allow-privileged, without which it refuses privileged Pods).

In the column *requests*, readback is a create that is no dry run, with what reads show of the object then, status is an update of that subresource, and merge, strategic, json and apply are the four types of a patch. The others are
sequences: life (an object is made, changed, deleted and made again), formats (JSON, YAML, protobuf, CBOR, tables), reads (all options of get, list and watch), selections (every field selector, and an object that comes into a selection and leaves it),
pages, subresources, statuses (who owns a status), resizes (a Pod is resized and evicted) and limits (a LimitRange, ResourceQuotas, accounts with secrets).
`

// sections of the page. A declaration stands in the first one that takes it.
var sections = []struct {
	title, text string
	takes       func(*declaration) bool
}{
	{
		"Fields of closed feature gates",
		"There are no feature gates here: a field that kube-apiserver drops while its gate is closed is kept, and checked if there are rules for it.",
		ofGate,
	},
	{"Nothing to notice", "", func(d *declaration) bool { return strings.HasPrefix(d.Notices, "nothing") }},
	{"Other words and headers", "", func(d *declaration) bool {
		return d.Class == otherMessage || d.Class == otherWarnings || d.Class == otherCauses || d.Class == otherHeaders
	}},
	{"Other objects", "", func(d *declaration) bool { return d.Class == otherObject }},
	{"Accepted, refused or done otherwise", "", func(*declaration) bool { return true }},
}

// ofGate reports whether a difference stands because there are no feature gates.
func ofGate(d *declaration) bool {
	return strings.Contains(d.Why, "there are no feature gates") || strings.Contains(d.Why, "a gate that is closed")
}

// markdown returns the page.
func markdown(list declarations) []byte {
	in := make([]declarations, len(sections))
	gates := 0
	for _, d := range list {
		if ofGate(d) {
			gates++
		}
		for i := range sections {
			if sections[i].takes(d) {
				in[i] = append(in[i], d)
				break
			}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, introduction, len(list), gates)
	for _, i := range []int{4, 3, 2, 0, 1} { // what matters most comes first
		fmt.Fprintf(&b, "\n## %s\n\n", sections[i].title)
		if sections[i].text != "" {
			fmt.Fprintf(&b, "%s\n\n", sections[i].text)
		}
		b.WriteString("| kinds | requests | field | what you notice | why |\n|-|-|-|-|-|\n")
		for _, d := range in[i] {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", orAll(d.Kinds), orAll(d.Verbs), d.Field, d.Notices, d.Why)
		}
	}
	return b.Bytes()
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}
