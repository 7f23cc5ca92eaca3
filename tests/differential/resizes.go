package differential

import (
	"fmt"
	"net/http"
)

// resizesOf resizes pods, with a node and without one, and evicts one of them.
func resizesOf(*object) []step {
	var steps []step
	add := func(name, method, at, contentType, body string) {
		s := step{name: name, method: method, at: at, contentType: contentType}
		if body != "" {
			value, err := parseJSON([]byte(body))
			if err != nil {
				panic(err) // it stands below
			}
			s.body = constant(value)
		}
		steps = append(steps, s)
	}
	node := func(name, os, features string) {
		add("create the node "+name, http.MethodPost, "/api/v1/nodes", "", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/os":%q}},"status":{"allocatable":{"cpu":"1","memory":"1Gi"},"declaredFeatures":[%s]}}`, name, os, features))
	}
	pod := func(name, more string) {
		add("create "+name, http.MethodPost, "", "", fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"initContainers":[{"name":"i","image":"i","resources":{"requests":{"cpu":"10m"}}}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m","memory":"10Mi"}}}]%s}}`, name, more))
	}
	resize := func(name, spec string) {
		add("resize "+name+" to "+spec, http.MethodPatch, "/"+name+"/resize", asStrategicPatch, `{"spec":`+spec+`}`)
	}
	container := func(cpu, memory string) string {
		return fmt.Sprintf(`{"containers":[{"name":"c","resources":{"requests":{"cpu":%q,"memory":%q}}}]}`, cpu, memory)
	}
	node("resizer", "linux", `"InPlacePodVerticalScalingInitContainers"`)
	node("windows", "windows", "")
	pods := map[string]string{
		"unbound": "", "bound": `,"nodeName":"resizer"`, "elsewhere": `,"nodeName":"windows"`, "lost": `,"nodeName":"gone"`,
		"shared": `,"nodeName":"resizer","resources":{"requests":{"cpu":"200m"}}`,
	}
	names := []string{"unbound", "bound", "elsewhere", "lost", "shared"}
	for _, name := range names {
		pod(name, pods[name])
		for _, spec := range []string{
			container("100m", "10Mi"), container("150m", "10Mi"), container("150m", "2Gi"), container("2", "10Mi"),
			`{"initContainers":[{"name":"i","resources":{"requests":{"cpu":"20m"}}}]}`, `{"resources":{"requests":{"cpu":"300m"}}}`,
		} {
			resize(name, spec)
		}
		add("get "+name, http.MethodGet, "/"+name, "", "")
	}
	add("evict bound", http.MethodPost, "/bound/eviction", "", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"bound"}}`)
	add("get the evicted", http.MethodGet, "/bound", "", "")
	add("evict unbound", http.MethodPost, "/unbound/eviction", "", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"unbound"}}`)
	add("get the evicted that had no node", http.MethodGet, "/unbound", "", "")
	for _, name := range names {
		add("delete "+name, http.MethodDelete, "/"+name+"?gracePeriodSeconds=0", "", "")
	}
	for _, name := range []string{"resizer", "windows"} {
		add("delete the node "+name, http.MethodDelete, "/api/v1/nodes/"+name, "", "")
	}
	return steps
}
