package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// file writes a file for a command to read, and returns its path.
func (k *kubectl) file(name, content string) string {
	k.t.Helper()
	path := filepath.Join(k.t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		k.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		k.t.Fatal(err)
	}
	return path
}

// generatorTour has kubectl make an object of each kind that it can make from a
// command line, and looks at each.
func (k *kubectl) generatorTour() {
	k.t.Helper()
	// All tours share the objects without a namespace: they get names of their own.
	global := func(name string) string { return name + "-" + k.namespace }
	made := []struct {
		object string // what kubectl says that it created
		args   []string
	}{
		{"configmap/settings", []string{"configmap", "settings", "--from-literal=size=1"}},
		{"secret/password", []string{"secret", "generic", "password", "--from-literal=p=x"}},
		{"secret/registry", []string{"secret", "docker-registry", "registry", "--docker-username=u", "--docker-password=p", "--docker-email=e@example.com"}},
		{"serviceaccount/robot", []string{"serviceaccount", "robot"}},
		{"resourcequota/most", []string{"quota", "most", "--hard=pods=100"}},
		{"role.rbac.authorization.k8s.io/reader", []string{"role", "reader", "--verb=get", "--resource=pods"}},
		{"rolebinding.rbac.authorization.k8s.io/readers", []string{"rolebinding", "readers", "--role=reader", "--serviceaccount=" + k.namespace + ":robot"}},
		{"clusterrole.rbac.authorization.k8s.io/" + global("reader"), []string{"clusterrole", global("reader"), "--verb=get", "--resource=pods"}},
		{"clusterrolebinding.rbac.authorization.k8s.io/" + global("readers"), []string{"clusterrolebinding", global("readers"), "--clusterrole=" + global("reader"), "--user=u"}},
		{"priorityclass.scheduling.k8s.io/" + global("urgent"), []string{"priorityclass", global("urgent"), "--value=10"}},
		{"poddisruptionbudget.policy/few", []string{"pdb", "few", "--selector=app=made", "--min-available=1"}},
		{"ingress.networking.k8s.io/front", []string{"ingress", "front", "--rule=shop.example/=made:80"}},
		{"service/inner", []string{"service", "clusterip", "inner", "--tcp=80:80"}},
		{"service/outer", []string{"service", "nodeport", "outer", "--tcp=80:80"}},
		{"service/other", []string{"service", "externalname", "other", "--external-name=shop.example"}},
		{"service/balanced", []string{"service", "loadbalancer", "balanced", "--tcp=80:80"}},
		{"deployment.apps/made", []string{"deployment", "made", "--image=registry.example/made:1", "--replicas=2"}},
		{"job.batch/once", []string{"job", "once", "--image=registry.example/job"}},
		{"cronjob.batch/often", []string{"cronjob", "often", "--image=registry.example/job", "--schedule=0 0 1 1 *"}},
		{"job.batch/early", []string{"job", "early", "--from=cronjob/often"}},
	}
	for _, m := range made {
		k.shows([]string{`^` + m.object + ` created \(server dry run\)$`}, append([]string{"create", "--dry-run=server"}, m.args...)...)
		k.shows([]string{`^` + m.object + ` created$`}, append([]string{"create"}, m.args...)...)
		_, name, _ := strings.Cut(m.object, "/")
		k.shows([]string{`^Name: +` + name + `$`}, "describe", m.object)
		k.shows([]string{`^` + m.object + `$`}, "get", m.object, "-o", "name")
	}
	k.refused("already exists", "create", "deployment", "made", "--image=registry.example/made:1")
	k.shows(done, "rollout", "status", "deployment", "made", "--timeout=3m")
	k.shows([]string{`^service/made exposed$`}, "expose", "deployment", "made", "--port=80")
	k.shows([]string{`^horizontalpodautoscaler.autoscaling/made autoscaled$`}, "autoscale", "deployment", "made", "--min=2", "--max=5", "--cpu-percent=50")
	k.shows([]string{`^Min replicas: +2$`, `^Max replicas: +5$`}, "describe", "hpa", "made")
	k.shows([]string{`^service/paired created$`, `^pod/paired created$`}, "run", "paired", "--image=registry.example/any", "--expose", "--port=80", "--env=A=B", "--labels=app=paired")
	k.shows([]string{`^pod/paired condition met$`}, "wait", "--for=condition=Ready", "pod/paired", "--timeout=3m")
	k.shows([]string{`^pod/made-`, `^service/made `, `^deployment.apps/made `, `^replicaset.apps/made-`, `^cronjob.batch/often `}, "get", "all")
	k.run("delete", "clusterrole,clusterrolebinding,priorityclass", global("reader"), global("readers"), global("urgent"), "--ignore-not-found")
}

// changeTour changes objects in each of the ways that kubectl has, and reads
// them in each form.
func (k *kubectl) changeTour() {
	k.t.Helper()
	k.run("create", "deployment", "app", "--image=registry.example/app:1", "--replicas=2")
	replicas := func(want string) {
		k.t.Helper()
		k.shows([]string{`^` + want + `$`}, "get", "deployment", "app", "-o", `jsonpath={.spec.replicas}{"\n"}`)
	}
	for _, patch := range []struct{ kind, patch, want string }{
		{"strategic", `{"spec":{"replicas":3}}`, "3"},
		{"merge", `{"spec":{"replicas":4}}`, "4"},
		{"json", `[{"op":"test","path":"/spec/replicas","value":4},{"op":"replace","path":"/spec/replicas","value":5}]`, "5"},
	} {
		k.shows([]string{`^deployment.apps/app patched$`}, "patch", "deployment", "app", "--type="+patch.kind, "-p", patch.patch)
		replicas(patch.want)
	}
	k.refused("The request is invalid: : testing value /spec/replicas failed", "patch", "deployment", "app", "--type=json", "-p", `[{"op":"test","path":"/spec/replicas","value":4}]`)
	k.shows([]string{`patched$`}, "patch", "deployment", "app", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":2}}`)
	replicas("2")
	k.shows([]string{`^NAME +DESIRED +AVAILABLE +AGE$`}, "get", "deployment", "app", "--subresource=scale")
	k.run("wait", "--for=jsonpath={.status.replicas}=2", "deployment/app", "--timeout=3m")
	k.shows([]string{`^2 2$`}, "get", "deployment", "app", "--subresource=scale", "-o", `jsonpath={.spec.replicas} {.status.replicas}{"\n"}`)
	k.refused("Expected replicas to be 7", "scale", "deployment", "app", "--current-replicas=7", "--replicas=3")
	k.run("scale", "deployment", "app", "--current-replicas=2", "--replicas=3")
	replicas("3")
	k.edit("s/replicas: 3/replicas: 2/", "deployment", "app")
	replicas("2")

	k.run("label", "deployment", "app", "tier=front")
	k.refused("already has a value", "label", "deployment", "app", "tier=back")
	k.run("label", "deployment", "app", "tier=back", "--overwrite")
	k.shows([]string{`^tier=back$`}, "label", "deployment", "app", "--list")
	k.shows([]string{`^deployment.apps/app$`}, "get", "deployments", "-l", "tier in (back)", "-o", "name")
	k.run("label", "deployment", "app", "tier-")
	k.run("annotate", "deployment", "app", "example.com/why=tour")
	k.run("annotate", "deployment", "app", "example.com/why-")
	k.setTour()
	k.readTour()
	k.replaceTour()
	k.deleteTour()
}

// edit changes an object with sed in the place of an editor.
func (k *kubectl) edit(script string, what ...string) {
	k.t.Helper()
	sub := *k
	sub.env = append(append([]string(nil), k.env...), "EDITOR=sed -i '"+script+"'")
	sub.shows([]string{` edited$`}, append([]string{"edit"}, what...)...)
}

// setTour goes over the commands of `kubectl set`.
func (k *kubectl) setTour() {
	k.t.Helper()
	k.run("create", "serviceaccount", "runner")
	k.run("create", "service", "clusterip", "app", "--tcp=80:80")
	k.run("create", "rolebinding", "all", "--clusterrole=any", "--user=u")
	k.run("rollout", "pause", "deployment", "app")
	k.run("set", "image", "deployment/app", "app=registry.example/app:2")
	k.run("set", "env", "deployment/app", "MODE=fast")
	k.run("set", "resources", "deployment/app", "--limits=cpu=100m,memory=64Mi")
	k.run("set", "serviceaccount", "deployment/app", "runner")
	k.run("set", "selector", "service", "app", "app=app,tier=any")
	k.run("set", "subject", "rolebinding", "all", "--group=g")
	k.run("rollout", "resume", "deployment", "app")
	k.shows(done, "rollout", "status", "deployment", "app", "--timeout=3m")
	k.shows([]string{`Image: +registry.example/app:2$`, `MODE: +fast$`, `memory: +64Mi$`, `Service Account: +runner$`}, "describe", "deployment", "app")
}

// readTour reads in each form.
func (k *kubectl) readTour() {
	k.t.Helper()
	for _, form := range [][]string{
		{"-o", "wide"}, {"-o", "yaml"}, {"-o", "json"}, {"-o", "name"}, {"-o", "custom-columns=N:.metadata.name"},
		{"-o", `jsonpath={.items[*].metadata.name}`}, {"-o", "go-template={{range .items}}{{.metadata.name}}{{end}}"},
		{"--show-labels"}, {"--show-kind"}, {"-L", "app"}, {"--sort-by=.metadata.name"}, {"--chunk-size=1"}, {"-A"}, {"--field-selector=metadata.name=app"},
	} {
		k.shows([]string{`app`}, append([]string{"get", "deployments"}, form...)...)
	}
	k.shows([]string{`^app +`}, "get", "deployment", "app")
	k.shows([]string{`^deployment.apps/app `, `^service/app `}, "get", "deployments,services")
	k.refused("NotFound", "get", "deployment", "missing")
	k.refused("the server doesn't have a resource type", "get", "nonsense")
	k.shows([]string{`"kind":"DeploymentList"`}, "get", "--raw", "/apis/apps/v1/namespaces/"+k.namespace+"/deployments")
}

// replaceTour replaces: with what is there, with what is not, and by force.
func (k *kubectl) replaceTour() {
	k.t.Helper()
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: replaced}\ndata: {size: %s}\n"
	file := k.file("replaced.yaml", fmt.Sprintf(manifest, "small"))
	k.refused("NotFound", "replace", "-f", file)
	k.run("create", "-f", file, "--save-config")
	uid := k.run("get", "configmap", "replaced", "-o", "jsonpath={.metadata.uid}")
	k.shows([]string{`^configmap/replaced replaced$`}, "replace", "-f", k.file("replaced.yaml", fmt.Sprintf(manifest, "large")))
	k.shows([]string{`^` + uid + ` large$`}, "get", "configmap", "replaced", "-o", `jsonpath={.metadata.uid} {.data.size}{"\n"}`)
	k.shows([]string{`replaced$`}, "replace", "--force", "-f", file)
	if now := k.run("get", "configmap", "replaced", "-o", "jsonpath={.metadata.uid}"); now == uid {
		k.t.Errorf("replaced by force, and still the object %s", uid)
	}
}

// deleteTour deletes in each way.
func (k *kubectl) deleteTour() {
	k.t.Helper()
	k.refused("NotFound", "delete", "pod", "missing")
	k.run("delete", "pod", "missing", "--ignore-not-found")
	k.shows([]string{`^No resources found$`}, "delete", "pods", "-l", "app=missing")
	for _, how := range [][]string{{"--now"}, {"--grace-period=0", "--force"}, {"--wait=false"}, {"--grace-period=1"}} {
		k.run("run", "victim", "--image=registry.example/any", "--restart=Never", "--", "sleep", "5")
		k.run(append([]string{"delete", "pod", "victim"}, how...)...)
		k.run("wait", "--for=delete", "pod/victim", "--timeout=3m")
	}
	// Orphans stay without an owner; other dependents are deleted with theirs.
	k.run("delete", "deployment", "app", "--cascade=orphan")
	k.shows([]string{`^registry.example/app:2$`}, "get", "replicasets", "-l", "app=app", "-o", `jsonpath={range .items[?(@.spec.replicas==2)]}{.spec.template.spec.containers[0].image}{"\n"}{end}`)
	k.run("delete", "replicasets", "--all", "--cascade=foreground")
	if left := k.run("get", "pods", "-l", "app=app", "-o", "name"); left != "" {
		k.t.Errorf("deleted in the foreground, and there are still:\n%s", left)
	}
}

// done is what `kubectl rollout status` ends with.
var done = []string{`successfully rolled out|roll out complete`}
