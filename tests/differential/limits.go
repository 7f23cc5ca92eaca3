package differential

import (
	"fmt"
	"net/http"
	"strings"
)

// limitsOf creates pods, claims and other objects in a namespace with a LimitRange, in one with
// ResourceQuotas, and for accounts that limit what a pod may mount.
func limitsOf(*object) []step {
	l := &limitSteps{}
	l.inRange()
	l.inQuota()
	l.ofAccounts()
	return l.steps
}

type limitSteps struct {
	steps []step
	at    string // of the namespace
}

// add adds a step. at is below the namespace, a query may follow it.
func (l *limitSteps) add(name, method, at, body string) {
	at, query, _ := strings.Cut(at, "?")
	s := step{name: name, method: method, at: l.at + at, query: query}
	if body != "" {
		value, err := parseJSON([]byte(body))
		if err != nil {
			panic(err) // it stands below
		}
		s.body = constant(value)
	}
	if method == http.MethodPatch {
		s.contentType = asStrategicPatch
	}
	l.steps = append(l.steps, s)
}

func (l *limitSteps) namespace(name string) {
	l.at = ""
	l.add("create the namespace "+name, http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
	l.at = "/api/v1/namespaces/" + name
	l.add("create its account", http.MethodPost, "/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`)
	l.uncompared() // this server makes one itself
}

// uncompared has the last step not compared.
func (l *limitSteps) uncompared() { l.steps[len(l.steps)-1].uncompared = true }

// end removes what was made of some resources, and the namespace.
func (l *limitSteps) end(resources ...string) {
	for _, resource := range append(resources, "serviceaccounts") {
		l.add("remove "+resource+" at "+l.at, http.MethodDelete, "/"+resource+"?gracePeriodSeconds=0", "")
		l.uncompared()
	}
	name := l.at[strings.LastIndex(l.at, "/")+1:]
	l.add("delete the namespace "+name, http.MethodDelete, "", "")
	l.add("end the namespace "+name, http.MethodPut, "/finalize", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
}

const dry = "?dryRun=All"

// pod creates a pod with a spec, or asks whether it could be.
func (l *limitSteps) pod(name, query, spec string) {
	l.add("create the pod "+name+query, http.MethodPost, "/pods"+query, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":%s}`, name, spec))
}

// container is one with a request and a limit of CPU; empty: none.
func container(request, limit string) string {
	var resources []string
	if request != "" {
		resources = append(resources, fmt.Sprintf(`"requests":{"cpu":%q}`, request))
	}
	if limit != "" {
		resources = append(resources, fmt.Sprintf(`"limits":{"cpu":%q}`, limit))
	}
	return `{"name":"c","image":"i","resources":{` + strings.Join(resources, ",") + `}}`
}

func (l *limitSteps) inRange() {
	l.namespace("ranged")
	l.add("create a LimitRange", http.MethodPost, "/limitranges", `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":"a"},"spec":{"limits":[
		{"type":"Container","max":{"cpu":"2"},"min":{"cpu":"100m"},"default":{"cpu":"500m"},"defaultRequest":{"cpu":"200m"},"maxLimitRequestRatio":{"cpu":"4"}},
		{"type":"Pod","max":{"cpu":"3","memory":"1Gi"},"maxLimitRequestRatio":{"cpu":"3"}},
		{"type":"PersistentVolumeClaim","max":{"storage":"10Gi"},"min":{"storage":"1Gi"}}]}}`)
	for _, p := range []struct{ name, requests, limits string }{
		{"plain", "", ""}, {"small", "50m", ""}, {"large", "1", "3"}, {"odd", "100m", "1"}, {"requesting", "300m", ""},
		{"limited", "", "1"}, {"equal", "1", "1"}, {"over", "2", "1"}, {"tiny", "100u", "100u"},
	} {
		l.pod(p.name, dry, `{"containers":[`+container(p.requests, p.limits)+`]}`)
	}
	two := strings.Replace(container("1800m", "1800m"), `"c"`, `"d"`, 1)
	l.pod("two", dry, `{"containers":[`+container("1800m", "1800m")+`,`+two+`]}`)
	l.pod("init", dry, `{"initContainers":[`+two+`],"containers":[`+container("1800m", "1800m")+`]}`)
	l.pod("sidecar", dry, `{"initContainers":[`+strings.Replace(two, `"image"`, `"restartPolicy":"Always","image"`, 1)+`],"containers":[`+container("1800m", "1800m")+`]}`)
	l.pod("whole", dry, `{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"4"}},"containers":[`+container("", "")+`]}`)
	l.pod("wholly", dry, `{"resources":{"limits":{"memory":"512Mi"}},"containers":[`+container("", "")+`]}`)
	l.pod("memory", dry, `{"containers":[{"name":"c","image":"i","resources":{"limits":{"memory":"2Gi"}}}]}`)
	l.pod("real", "", `{"containers":[`+container("1", "1")+`]}`)
	for _, amount := range []string{"1500m", "50m", "3"} {
		l.add("resize it to "+amount, http.MethodPatch, "/pods/real/resize", fmt.Sprintf(`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}}]}}`, amount, amount))
	}
	l.add("label it", http.MethodPatch, "/pods/real", `{"metadata":{"labels":{"a":"b"}}}`)
	for _, size := range []string{"500Mi", "5Gi", "20Gi"} {
		l.add("create a claim for "+size, http.MethodPost, "/persistentvolumeclaims"+dry,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":%q}}}}`, size))
	}
	l.end("pods", "limitranges")
}

func (l *limitSteps) inQuota() {
	l.namespace("counted")
	for _, q := range []struct{ name, hard, scopes string }{
		{"all", `{"pods":"2","requests.cpu":"1","limits.memory":"1Gi","count/configmaps":"3","services":"1","services.nodeports":"1","secrets":"0"}`, `[]`},
		{"best-effort", `{"pods":"0"}`, `["BestEffort"]`},
	} {
		quota := fmt.Sprintf(`{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":%q},"spec":{"hard":%s,"scopes":%s}`, q.name, q.hard, q.scopes)
		l.add("create the quota "+q.name, http.MethodPost, "/resourcequotas", quota+`}`)
		l.add("count for "+q.name, http.MethodPut, "/resourcequotas/"+q.name+"/status", quota+`,"status":{"hard":`+q.hard+`,"used":{}}}`)
	}
	with := func(cpu string) string {
		return fmt.Sprintf(`{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":%q},"limits":{"memory":"100Mi"}}}]}`, cpu)
	}
	l.pod("unsaid", dry, `{"containers":[`+container("", "")+`]}`)
	l.steps[len(l.steps)-1].while = "status unknown for quota" // kube-apiserver's plugin sees a count a moment later
	l.pod("half", dry, `{"containers":[`+container("1", "")+`]}`)
	l.pod("large", dry, with("2"))
	l.pod("first", "", with("600m"))
	l.pod("second", "", with("600m"))
	l.add("resize the first", http.MethodPatch, "/pods/first/resize", `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1100m"}}}]}}`)
	l.pod("third", "", with("100m"))
	l.pod("fourth", "", with("100m"))
	l.add("create a secret", http.MethodPost, "/secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`)
	service := `{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"type":"NodePort","ports":[{"name":"a","port":1}%s]}}`
	l.add("create a service with two ports", http.MethodPost, "/services", fmt.Sprintf(service, "a", `,{"name":"b","port":2}`))
	l.add("create a service", http.MethodPost, "/services", fmt.Sprintf(service, "a", ""))
	l.add("create another service", http.MethodPost, "/services", fmt.Sprintf(service, "b", ""))
	l.add("get the quota", "", "/resourcequotas/all", "")
	l.add("delete a pod", http.MethodDelete, "/pods/first?gracePeriodSeconds=0", "")
	l.end("pods", "services/a", "resourcequotas")
}

func (l *limitSteps) ofAccounts() {
	l.namespace("accounts")
	l.add("create an account with a secret", http.MethodPost, "/serviceaccounts",
		`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"limited","annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}},"secrets":[{"name":"a"}],"imagePullSecrets":[{"name":"p"}],"automountServiceAccountToken":false}`)
	for _, p := range []struct{ name, spec string }{
		{"may", `"volumes":[{"name":"v","secret":{"secretName":"a"}}]`},
		{"may-not", `"volumes":[{"name":"v","secret":{"secretName":"b"}}]`},
		{"env", `"initContainers":[{"name":"i","image":"i","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"b","key":"k"}}}]}]`},
		{"env-of", `"initContainers":[{"name":"i","image":"i","envFrom":[{"secretRef":{"name":"b"}}]}]`},
		{"pull", `"imagePullSecrets":[{"name":"b"}]`},
		{"its-pull", `"imagePullSecrets":[{"name":"p"}]`},
		{"projected", `"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"b"}}]}}]`},
		{"mounted", `"automountServiceAccountToken":true`},
	} {
		l.pod(p.name, dry, `{"serviceAccountName":"limited",`+p.spec+`,"containers":[`+container("", "")+`]}`)
	}
	l.pod("unknown", dry, `{"serviceAccountName":"unknown","containers":[`+container("", "")+`]}`)
	l.pod("debugged", "", `{"serviceAccountName":"limited","containers":[`+container("", "")+`]}`)
	l.add("debug it", http.MethodPatch, "/pods/debugged/ephemeralcontainers", `{"spec":{"ephemeralContainers":[{"name":"e","image":"i","envFrom":[{"secretRef":{"name":"b"}}]}]}}`)
	l.end("pods")
}
