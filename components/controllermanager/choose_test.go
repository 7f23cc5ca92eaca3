package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/levelwire/levelwire/client"
)

// TestChosenControllers: words mean what they mean to kube-controller-manager.
func TestChosenControllers(t *testing.T) {
	without := func(unwanted ...string) (names []string) {
		return slices.DeleteFunc(Names(), func(name string) bool { return slices.Contains(unwanted, name) })
	}
	for _, tc := range []struct {
		name  string
		words []string
		want  []string
	}{
		{"nothing said", nil, Names()},
		{"all", []string{"*"}, Names()},
		{"all but one", []string{"*", "-job-controller"}, without("job-controller")},
		{"all but one, said first", []string{"-job-controller", "*"}, without("job-controller")},
		{"by a former name", []string{"*", "-podgc"}, without("pod-garbage-collector-controller")},
		{"only these", []string{"replicaset-controller", "deployment"}, []string{"deployment-controller", "replicaset-controller"}},
		{"wanted and not", []string{"job-controller", "-job-controller"}, nil},
		{"only without", []string{"-job-controller"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			chosen, err := choose(tc.words)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, c := range chosen {
				names = append(names, c.name)
			}
			slices.Sort(names)
			if !slices.Equal(names, tc.want) {
				t.Errorf("%q:\n got %q\nwant %q", tc.words, names, tc.want)
			}
		})
	}
}

// TestUnknownController: a manager that is to run or to leave out what there is not says what there is.
func TestUnknownController(t *testing.T) {
	for _, word := range []string{"nodes", "-nodes", "-endpoints-controller", "", "-"} {
		_, err := NewManager(&client.Client{}, Options{Controllers: []string{"*", word}})
		if err == nil || !strings.Contains(err.Error(), `there is no controller "`+strings.TrimPrefix(word, "-")+`"`) || !strings.Contains(err.Error(), "replicaset-controller") {
			t.Errorf("%q: %v", word, err)
		}
	}
}

// TestNamesAreUnique: one name never means two controllers.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, c := range controllers {
		for _, name := range append([]string{c.name}, c.aliases...) {
			if other, ok := seen[name]; ok {
				t.Errorf("%q is %s and %s", name, other, c.name)
			}
			seen[name] = c.name
		}
	}
}
