package defaults

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// published is the listing of what Kubernetes publishes. make default-roles writes it.
const published = "testdata/kubernetes-v1.37.txt"

var kubernetes = flag.String("kubernetes", "", "folder of the module k8s.io/kubernetes that tests/differential/judge requires: write "+published+" anew from it")

// bootstrapPolicy is where Kubernetes' own tests have the roles and bindings that a server
// creates. Those of features that are off by default are in files of their own, and left out.
const bootstrapPolicy = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"

// TestPublishedListing: the first line of the listing names the module that it was made from,
// with its checksum, and that is the version of the kube-apiserver that others of our tests
// compare with.
func TestPublishedListing(t *testing.T) {
	head := "# of k8s.io/kubernetes " + moduleSum(t) + ", " + bootstrapPolicy + "/*.yaml, by make default-roles"
	if *kubernetes != "" {
		text := strings.Join(append([]string{head}, listing(readBootstrapPolicy(t, filepath.Join(*kubernetes, bootstrapPolicy)))...), "\n") + "\n"
		if err := os.WriteFile(published, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(string(file), "\n"); first != head {
		t.Errorf("it begins with\n%s\nwant\n%s\nRun make default-roles.", first, head)
	}
}

// moduleSum returns version and checksum of the module k8s.io/kubernetes.
func moduleSum(t *testing.T) string {
	t.Helper()
	sums, err := os.ReadFile("../../../../tests/differential/judge/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, ok := strings.CutPrefix(strings.TrimSpace(line), "k8s.io/kubernetes ")
		if ok && !strings.Contains(sum, "/go.mod ") {
			return sum
		}
	}
	t.Fatal("tests/differential/judge/go.sum has no k8s.io/kubernetes")
	return ""
}

// policy is roles and bindings.
type policy struct {
	clusterRoles        []rbacv1.ClusterRole
	roles               []rbacv1.Role
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roleBindings        []rbacv1.RoleBinding
}

// own is what this package creates.
func own() policy {
	return policy{
		values(append(clusterRoles(), controllerRoles()...)), values(namespacedRoles()),
		values(append(clusterRoleBindings(), controllerBindings()...)), values(roleBindings()),
	}
}

func values[T any](pointers []*T) []T {
	all := make([]T, len(pointers))
	for i, p := range pointers {
		all[i] = *p
	}
	return all
}

func readBootstrapPolicy(t *testing.T, folder string) policy {
	t.Helper()
	return policy{
		append(readList[rbacv1.ClusterRole](t, folder, "cluster-roles"), readList[rbacv1.ClusterRole](t, folder, "controller-roles")...),
		readList[rbacv1.Role](t, folder, "namespace-roles"),
		append(readList[rbacv1.ClusterRoleBinding](t, folder, "cluster-role-bindings"), readList[rbacv1.ClusterRoleBinding](t, folder, "controller-role-bindings")...),
		readList[rbacv1.RoleBinding](t, folder, "namespace-role-bindings"),
	}
}

// readList reads a List of objects. A field that the type does not have is an error.
func readList[T any](t *testing.T, folder, name string) []T {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta `json:"metadata"`
		Items           []T             `json:"items"`
	}
	if err := yaml.UnmarshalStrict(file, &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%s: %d objects, %v", name, len(list.Items), err)
	}
	return list.Items
}

// entries are the indented lines by the line before them.
func entries(lines []string) map[string][]string {
	all := map[string][]string{}
	head := ""
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if rest, ok := strings.CutPrefix(line, "\t"); ok {
			all[head] = append(all[head], rest)
			continue
		}
		head = line
		all[head] = nil
	}
	return all
}

// listing has a line for each role and binding, with one for each right and subject.
func listing(p policy) []string {
	var lines []string
	list := func(kind string, meta metav1.ObjectMeta, rules []rbacv1.PolicyRule, aggregation *rbacv1.AggregationRule) {
		head := kind + " " + strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/")
		for _, label := range slices.Sorted(maps.Keys(meta.Labels)) {
			if strings.Contains(label, "aggregate") {
				head += " label " + label
			}
		}
		if aggregation != nil {
			for _, selector := range aggregation.ClusterRoleSelectors {
				for _, label := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
					head += " selects " + label
				}
			}
		}
		lines = append(lines, head)
		lines = append(lines, permissions(rules)...)
	}
	for _, r := range p.clusterRoles {
		list("ClusterRole", r.ObjectMeta, r.Rules, r.AggregationRule)
	}
	for _, r := range p.roles {
		list("Role", r.ObjectMeta, r.Rules, nil)
	}
	bind := func(kind string, meta metav1.ObjectMeta, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		lines = append(lines, fmt.Sprintf("%s %s of %s %s", kind, strings.TrimPrefix(meta.Namespace+"/"+meta.Name, "/"), ref.Kind, ref.Name))
		for _, s := range subjects {
			lines = append(lines, "\t"+s.Kind+" "+strings.TrimPrefix(s.Namespace+"/"+s.Name, "/"))
		}
	}
	for _, b := range p.clusterRoleBindings {
		bind("ClusterRoleBinding", b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	for _, b := range p.roleBindings {
		bind("RoleBinding", b.ObjectMeta, b.RoleRef, b.Subjects)
	}
	return lines
}

// permissions lists the verbs of each resource and path.
func permissions(rules []rbacv1.PolicyRule) []string {
	verbs := map[string]map[string]bool{}
	add := func(what, verb string) {
		if verbs[what] == nil {
			verbs[what] = map[string]bool{}
		}
		verbs[what][verb] = true
	}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				add(url, verb)
			}
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					if len(rule.ResourceNames) == 0 {
						add(name+"."+group, verb)
					}
					for _, object := range rule.ResourceNames {
						add(name+"."+group+"["+object+"]", verb)
					}
				}
			}
		}
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		lines = append(lines, "\t"+what+": "+strings.Join(slices.Sorted(maps.Keys(verbs[what])), " "))
	}
	return lines
}
