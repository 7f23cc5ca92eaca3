package main

import (
	"os"
	"path/filepath"
	"strings"
)

// tourManifest is a Deployment and a ConfigMap, to be applied and changed.
const tourManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: site, labels: {set: tour}}
spec:
  replicas: 2
  selector: {matchLabels: {app: site}}
  template:
    metadata: {labels: {app: site}}
    spec: {containers: [{name: site, image: "registry.example/site:1", ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: site, labels: {set: tour}}
data: {size: small}
`

// clientApplyTour applies on kubectl's side: what it would do, what it did, what
// differs, and what it takes away.
func (k *kubectl) clientApplyTour() {
	k.t.Helper()
	file := k.file("site.yaml", tourManifest)
	both := []string{`^deployment.apps/site created`, `^configmap/site created`}
	k.shows(both, "apply", "--dry-run=server", "-f", file)
	k.refused("NotFound", "get", "deployment", "site")
	k.shows(both, "apply", "-f", file)
	k.shows([]string{`^deployment.apps/site unchanged$`, `^configmap/site unchanged$`}, "apply", "-f", file)
	if diff := k.run("diff", "-f", file); diff != "" {
		k.t.Errorf("what was applied differs:\n%s", diff)
	}
	next := k.file("next.yaml", strings.Replace(tourManifest, "site:1", "site:2", 1))
	k.differs(`+      - image: registry.example/site:2`, "diff", "-f", next)
	k.differs(`+      - image: registry.example/site:2`, "diff", "--server-side", "--force-conflicts", "-f", next)
	k.shows([]string{`^deployment.apps/site configured$`, `^configmap/site unchanged$`}, "apply", "-f", next)
	k.shows(done, "rollout", "status", "deployment", "site", "--timeout=3m")

	k.shows([]string{`image: registry.example/site:2$`}, "apply", "view-last-applied", "deployment/site")
	k.run("apply", "set-last-applied", "-f", file)
	k.shows([]string{`image: registry.example/site:1$`}, "apply", "view-last-applied", "deployment/site")
	k.shows([]string{`^configmap/site pruned$`}, "apply", "--prune", "-l", "set=tour", "--prune-allowlist=core/v1/ConfigMap",
		"-f", k.file("fewer.yaml", tourManifest[:strings.Index(tourManifest, "---")]))
	k.refused("NotFound", "get", "configmap", "site")
	k.shows([]string{`^deployment.apps "site" deleted`}, "delete", "-f", file, "--ignore-not-found")
}

// differs runs a diff, whose exit code 1 says that there is one.
func (k *kubectl) differs(line string, args ...string) {
	k.t.Helper()
	out, err := k.try(args...)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") || !strings.Contains(out, line) {
		k.t.Errorf("kubectl %s does not show %q: %v\n%s", strings.Join(args, " "), line, err, out)
	}
}

// validationTour gives kubectl what is wrong, and asks for each kind of
// validation.
func (k *kubectl) validationTour() {
	k.t.Helper()
	misspelt := k.file("misspelt.yaml", strings.Replace(tourManifest, "ports:", "prots:", 1))
	k.refused(`unknown field "spec.template.spec.containers[0].prots"`, "create", "-f", misspelt, "--dry-run=server")
	k.refused(`unknown field "spec.template.spec.containers[0].prots"`, "apply", "-f", misspelt, "--dry-run=server")
	k.shows([]string{`created \(server dry run\)`}, "create", "--validate=warn", "-f", misspelt, "--dry-run=server")
	k.shows([]string{`created \(server dry run\)`}, "create", "--validate=ignore", "-f", misspelt, "--dry-run=server")
	k.refused("spec.template.metadata.labels: Invalid value", "create", "--dry-run=server", "-f",
		k.file("invalid.yaml", strings.Replace(tourManifest, "metadata: {labels: {app: site}}", "metadata: {labels: {app: other}}", 1)))
	k.refused("no matches for kind", "create", "-f", k.file("unknown.yaml", "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x}\n"))
}

// kustomizeTour applies what kustomize makes.
func (k *kubectl) kustomizeTour() {
	k.t.Helper()
	dir := filepath.Dir(k.file("kustomization.yaml", "namePrefix: tour-\nresources: [settings.yaml]\n"))
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {size: small}\n"
	if err := os.WriteFile(filepath.Join(dir, "settings.yaml"), []byte(settings), 0o600); err != nil {
		k.t.Fatal(err)
	}
	k.shows([]string{`^  name: tour-settings$`}, "kustomize", dir)
	k.shows([]string{`^configmap/tour-settings created$`}, "apply", "-k", dir)
	k.shows([]string{`^tour-settings +1 `}, "get", "-k", dir)
	k.shows([]string{`^configmap "tour-settings" deleted`}, "delete", "-k", dir)
}

// waitTour waits for each kind of thing.
func (k *kubectl) waitTour() {
	k.t.Helper()
	k.run("apply", "-f", k.file("site.yaml", tourManifest))
	k.run("wait", "--for=condition=Available", "deployment/site", "--timeout=3m")
	k.run("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/site", "--timeout=3m")
	k.refused("timed out waiting", "wait", "--for=condition=Absurd", "deployment/site", "--timeout=1s")
	gone := k.command("wait", "--for=delete", "configmap/site", "--timeout=3m")
	if err := gone.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.run("delete", "configmap", "site")
	if err := gone.Wait(); err != nil {
		k.t.Errorf("waiting for a deletion: %v", err)
	}
	k.run("delete", "deployment", "site")
}
