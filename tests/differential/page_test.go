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

[tests/differential](../../tests/differential/doc.go) asks this server and kube-apiserver 1.37.2 the same: creates, updates, patches, deletes and writes of
subresources, with one field or two set to odd values, and sequences of writes, reads and watches of one object. It compares code, reason, causes, message,
object and warnings, and in sequences also headers. Both servers allow every request, and run the admission plugins that kube-apiserver runs by default.
The %d differences below stand on purpose (and what a server itself writes into the status of APIServices, FlowSchemas and ValidatingAdmissionPolicies
is ours under another name in managedFields); what differs of [admission plugins](../operators/admission-plugins.md), [custom resources](custom-resources.md)
and [validation](validation.md) stands there. Please report any other as a fault. Status of a few kinds, fields within members of unions that no object of
the comparison has, and requests of users who may not do everything are not compared yet.

Most are fields whose feature gate is closed by default in Kubernetes. There are no feature gates here: such a field is kept, and checked if there are
rules for it.

| kinds | requests | field | what you notice | why |
|-|-|-|-|-|
`

// markdown returns the page.
func markdown(list declarations) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, introduction, len(list))
	for _, d := range list {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", orAll(d.Kinds), orAll(d.Verbs), d.Field, d.Notices, d.Why)
	}
	return b.Bytes()
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}
