package main

import (
	"os"
	"strings"
	"testing"
)

// TestUpstreamFlags: each flag of kube-apiserver is one of serve and up, or refused with what to do
// instead.
func TestUpstreamFlags(t *testing.T) {
	content, err := os.ReadFile("testdata/kube-apiserver-v1.37-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	upstream := map[string]bool{}
	for _, name := range strings.Fields(string(content)) {
		upstream[name] = true
		for _, command := range []string{"serve", "up"} {
			cmd, _, err := newRoot().Find([]string{command})
			if err != nil {
				t.Fatal(err)
			}
			cmd.InitDefaultHelpFlag()
			_, refused := upstreamFlags[name]
			if has := cmd.Flags().Lookup(name) != nil; has == refused {
				t.Errorf("%s --%s: it has the flag: %t, and says what to do instead: %t", command, name, has, refused)
			}
		}
	}
	for name, instead := range upstreamFlags {
		if !upstream[name] {
			t.Errorf("kube-apiserver has no --%s", name)
		}
		mustFail(t, invoke(t.Context(), "serve", "--"+name+"=x"), exitUsage, "--"+name+" is a flag of kube-apiserver that does not exist here: "+instead)
	}
	if got := invoke(t.Context(), "serve", "--oidc-issuer=x"); strings.Contains(got.stderr, "kube-apiserver") {
		t.Errorf("a flag of neither: %q", got.stderr)
	}
}
