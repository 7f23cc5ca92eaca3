package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// createObjects creates what the matrix asks for. The pod a/used runs on the node n1 and
// uses everything else of that name in its namespace.
func (m *matrix) createObjects(t *testing.T) {
	t.Helper()
	core := func(plural, namespace string) string { return "/api/v1/namespaces/" + namespace + "/" + plural }
	for _, node := range []string{"n1", "n2"} {
		m.create(t, "/api/v1/nodes", object("v1", "Node", node, `"spec":{}`))
		m.create(t, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", object("coordination.k8s.io/v1", "Lease", node, `"spec":{}`))
	}
	for _, name := range []string{"used", "other"} {
		m.create(t, "/api/v1/persistentvolumes", object("v1", "PersistentVolume", name,
			`"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"},"claimRef":{"namespace":"a","name":"`+name+`"}}`))
	}
	for _, namespace := range []string{"a", "b"} {
		m.create(t, "/api/v1/namespaces", object("v1", "Namespace", namespace, `"spec":{}`))
		for _, name := range []string{"used", "other"} {
			m.create(t, core("serviceaccounts", namespace), object("v1", "ServiceAccount", name, `"automountServiceAccountToken":false`))
			m.create(t, core("secrets", namespace), object("v1", "Secret", name, `"type":"Opaque"`))
			m.create(t, core("configmaps", namespace), object("v1", "ConfigMap", name, `"data":{}`))
			m.create(t, core("persistentvolumeclaims", namespace), object("v1", "PersistentVolumeClaim", name,
				fmt.Sprintf(`"spec":{"volumeName":%q,"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`, name)))
			spec := fmt.Sprintf(`"serviceAccountName":%q,"containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":%[1]q}},{"configMapRef":{"name":%[1]q}}]}],`+
				`"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":%[1]q}}]`, name)
			if namespace == "a" && name == "used" {
				spec += `,"nodeName":"n1"`
			}
			m.create(t, core("pods", namespace), object("v1", "Pod", name, `"spec":{`+spec+`}`))
		}
		template := `"template":{"metadata":{"labels":{"app":"x"}},"spec":{"restartPolicy":%q,"containers":[{"name":"c","image":"i"}]}}`
		m.create(t, "/apis/apps/v1/namespaces/"+namespace+"/deployments", object("apps/v1", "Deployment", "one",
			`"spec":{"selector":{"matchLabels":{"app":"x"}},`+fmt.Sprintf(template, "Always")+`}`))
		m.create(t, "/apis/batch/v1/namespaces/"+namespace+"/jobs", object("batch/v1", "Job", "one", `"spec":{`+fmt.Sprintf(template, "Never")+`}`))
		m.create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles", object("rbac.authorization.k8s.io/v1", "Role", "one", `"rules":[]`))
		m.create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", object("rbac.authorization.k8s.io/v1", "RoleBinding", "one",
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"one"}`))
	}
	m.create(t, core("services", "a"), object("v1", "Service", "one", `"spec":{"ports":[{"port":80}]}`))
	m.create(t, core("resourcequotas", "a"), object("v1", "ResourceQuota", "one", `"spec":{}`))
	m.create(t, core("events", "a"), object("v1", "Event", "one", `"involvedObject":{"kind":"Pod","namespace":"a","name":"used"}`))
	m.create(t, core("serviceaccounts", "a"), object("v1", "ServiceAccount", "robot", `"secrets":[]`))
	m.create(t, "/apis/storage.k8s.io/v1/storageclasses", object("storage.k8s.io/v1", "StorageClass", "one", `"provisioner":"example.com/p"`))
	m.create(t, core("secrets", "kube-system"), object("v1", "Secret", "bootstrap-token-abcdef",
		`"type":"bootstrap.kubernetes.io/token","stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true"}`))
	m.createSigningRequest(t)
	m.createWidgets(t)
	token := m.create(t, "/api/v1/namespaces/a/serviceaccounts/robot/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	var review authenticationv1.TokenRequest
	if err := json.Unmarshal([]byte(token), &review); err != nil {
		t.Fatal(err)
	}
	m.robot = review.Status.Token
}

func (m *matrix) createSigningRequest(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
	m.create(t, "/apis/certificates.k8s.io/v1/certificatesigningrequests", object("certificates.k8s.io/v1", "CertificateSigningRequest", "one",
		fmt.Sprintf(`"spec":{"request":%q,"signerName":"example.com/signer","usages":["client auth"]}`, base64.StdEncoding.EncodeToString(encoded))))
}

// createWidgets defines a custom resource with a status and a scale.
func (m *matrix) createWidgets(t *testing.T) {
	t.Helper()
	m.create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com",
		`"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},`+
			`"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}}]}`))
	for _, namespace := range []string{"a", "b"} {
		path := "/apis/example.com/v1/namespaces/" + namespace + "/widgets"
		for ctx := deadline(t); ; {
			code, text := m.send(t, m.admin, nil, &matrixRequest{method: http.MethodPost, path: path, contentType: "application/json", body: object("example.com/v1", "Widget", "one", `"spec":{"replicas":1}`)}, false)
			if code == http.StatusCreated {
				break
			}
			if ctx.Err() != nil || code != http.StatusNotFound {
				t.Fatalf("%s: %d %s", path, code, text)
			}
		}
	}
}

func object(version, kind, name, rest string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, version, kind, name, rest)
}
