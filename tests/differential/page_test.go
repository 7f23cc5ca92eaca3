package differential

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
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
object, warnings and headers; of uids and versions, which each server chooses, it compares whether
an object's uid stays the same from step to step, and whether its version is the same, later or earlier. The %d rows
below stand on purpose; %d of them come from feature gates. Please report any other difference as a fault.

**Does it affect my program?** Most likely not, if it uses only fields that kube-apiserver serves by default. Look for its rows if it deletes collections with
a resourceVersion, sends a DELETE with a body and with dryRun in the query, deletes all CustomResourceDefinitions at once, compares managedFields, reads the text of
errors, or takes warnings for errors.

**Known, and not below:** kinds on which nothing here acts, and what simulated pods cannot do ([compatibility](compatibility.md)),
[admission plugins](../operators/admission-plugins.md), [webhooks and policies](../operators/admission.md), [custom resources](custom-resources.md), [field ownership](field-ownership.md), [OpenAPI](openapi.md),
[fairness](../operators/fairness.md), [aggregation](../operators/aggregation.md), and the last column of [validation](validation.md). A watch goes on after a restart of the server, where
kube-apiserver answers 410. A watch may ask for a resourceVersion that the server has not reached: if it does not reach it within 5 seconds, the watch ends with
an error here, and stays open without an event at kube-apiserver. A Service whose port for health checks is taken, or an update that names one node
port twice, gets 422 here, and 500 there. In the deletion of a collection a webhook is told the name of each object here, and none there. A CertificateSigningRequest with an
RSA key of more than 16,384 bits is refused here: to check its signature takes minutes of a processor.

**Not compared:** rights, as both servers allow every request (--authorization-mode=AlwaysAllow; kube-apiserver also runs with --allow-privileged, without which it
refuses privileged Pods); fields of union members that no object of the comparison has; exec, attach, log, portforward and
proxy; the versions of lists and bookmarks, and those of APIServices, CustomResourceDefinitions, FlowSchemas and ValidatingAdmissionPolicies; sequences of FlowSchemas, and how the statuses of APIServices, CustomResourceDefinitions and ValidatingAdmissionPolicies are owned, into which a
server itself writes. Most single writes are dry runs; a tenth of the creates, some deletes and every sequence write. Every option of a read is tried with ConfigMaps, Nodes, Pods, Deployments and
CustomResourceDefinitions, pages with ConfigMaps, and most fields of the metadata with ConfigMaps, Namespaces and Deployments: their rules are the same for all kinds.

In the column *requests*, readback is a create that is no dry run, with what reads show of the object then, status is an update of that subresource, and merge, strategic, json and apply are the four types of a patch. The others are
sequences: life (an object is made, changed, deleted and made again), formats (JSON, YAML, protobuf, CBOR, tables), reads (all options of get, list and watch), selections (every field selector, and an object that comes into a selection and leaves it),
pages, subresources, statuses (who owns a status), resizes (a Pod is resized and evicted) and limits (a LimitRange, ResourceQuotas, accounts with secrets).
`

type section struct {
	title, text string
	takes       func(*declaration) bool
}

// sections of the page. A declaration stands in the first one that takes it.
var sections = []section{
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
	rows := make([][]string, len(sections))
	all, gates := 0, 0
	for _, d := range list {
		i := slices.IndexFunc(sections, func(s section) bool { return s.takes(d) })
		row := fmt.Sprintf("| %s | %s | %s | %s | %s |\n", orAll(d.Kinds), orAll(d.Verbs), d.Field, d.Notices, d.Why)
		if slices.Contains(rows[i], row) {
			continue // another class of the same difference
		}
		rows[i] = append(rows[i], row)
		all++
		if ofGate(d) {
			gates++
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, introduction, all, gates)
	for _, i := range []int{4, 3, 2, 0, 1} { // what matters most comes first
		fmt.Fprintf(&b, "\n## %s\n\n", sections[i].title)
		if sections[i].text != "" {
			fmt.Fprintf(&b, "%s\n\n", sections[i].text)
		}
		b.WriteString("| kinds | requests | field | what you notice | why |\n|-|-|-|-|-|\n")
		b.WriteString(strings.Join(rows[i], ""))
	}
	return b.Bytes()
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}
