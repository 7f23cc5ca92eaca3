package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
)

// discoveryTour asks what there is, and what it means.
func (k *kubectl) discoveryTour() {
	k.t.Helper()
	k.shows([]string{`^Server Version: .*v1\.\d+\.\d+`}, "version")
	k.shows([]string{`control plane`}, "cluster-info")
	k.shows([]string{`^apps/v1$`, `^v1$`, `^batch/v1$`}, "api-versions")
	k.shows([]string{`^deployments +deploy +apps/v1 +true +Deployment`}, "api-resources", "--api-group=apps")
	k.shows([]string{`^nodes$`}, "api-resources", "--namespaced=false", "--verbs=list,get", "-o", "name")
	k.shows([]string{`FIELD: image <string>`, `Container image name`}, "explain", "pod.spec.containers.image")
	k.shows([]string{`maxSurge`, `rollingUpdate`}, "explain", "deployment", "--recursive")
	k.shows([]string{`^KIND: +HorizontalPodAutoscaler`, `^VERSION: +v1$|autoscaling/v1$`}, "explain", "hpa", "--api-version=autoscaling/v1")
	k.shows([]string{`^ok`}, "get", "--raw", "/readyz")
	k.shows([]string{`^controller-manager +Healthy +ok`, `^etcd-0 +Healthy +ok`, `^scheduler +Healthy +ok`}, "get", "cs")
	k.shows([]string{`server: https://127\.0\.0\.1:`}, "config", "view")
	k.run("cluster-info", "dump", "--output-directory="+k.t.TempDir())
}

// identityTour asks which user the client is and what that user may do, and
// makes tokens and certificates.
func (k *kubectl) identityTour() {
	k.t.Helper()
	k.shows([]string{`^yes$`}, "auth", "can-i", "create", "pods")
	k.shows([]string{`\*\.\*`}, "auth", "can-i", "--list")
	k.isUser([]string{`system:masters`})
	k.isUser([]string{`^Username +bob$`}, "--as=bob")
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reconciled, namespace: %s}\nrules: [{apiGroups: [''], resources: [pods], verbs: [%s]}]\n"
	k.shows([]string{`reconciled$`}, "auth", "reconcile", "-f", k.file("role.yaml", fmt.Sprintf(role, k.namespace, "get")))
	k.shows([]string{`reconciled$`}, "auth", "reconcile", "-f", k.file("role.yaml", fmt.Sprintf(role, k.namespace, "list")))
	k.shows([]string{`pods .*\[list get\]|pods .*\[get list\]`}, "describe", "role", "reconciled")

	k.run("create", "serviceaccount", "visitor")
	token := strings.TrimSpace(k.run("create", "token", "visitor", "--duration=1h"))
	visitor := []string{"--token=" + token, "--server=" + k.server(), "--insecure-skip-tls-verify", "--kubeconfig=/dev/null"}
	k.refused("no", append([]string{"auth", "can-i", "get", "pods"}, visitor...)...)
	k.run("create", "rolebinding", "visitor", "--clusterrole=view", "--serviceaccount="+k.namespace+":visitor")
	k.shows([]string{`^yes$`}, append([]string{"auth", "can-i", "get", "pods"}, visitor...)...)
	k.isUser([]string{`^Username +system:serviceaccount:` + k.namespace + `:visitor$`}, visitor...)

	name := "wanted-by-" + k.namespace
	k.run("create", "-f", k.file("csr.yaml", signingRequest(k, name)))
	k.shows([]string{`^` + name + ` .*Pending`}, "get", "csr", name)
	k.shows([]string{`approved$`}, "certificate", "approve", name)
	k.shows([]string{`^` + name + ` .*Approved`}, "get", "csr", name)
	k.refused("already Approved", "certificate", "deny", name)
	k.shows([]string{`Common Name: +me$`}, "describe", "csr", name)
	k.run("delete", "csr", name)
}

// server returns the URL of the API server.
func (k *kubectl) server() string {
	return k.run("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
}

func signingRequest(k *kubectl, name string) string {
	k.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		k.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "me"}}, key)
	if err != nil {
		k.t.Fatal(err)
	}
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: " + name + "}\n" +
		"spec: {signerName: example.com/signer, usages: [client auth], request: " + base64.StdEncoding.EncodeToString(request) + "}\n"
}

// nodeTour takes a node out of service and back.
func (k *kubectl) nodeTour() {
	k.t.Helper()
	k.run("create", "deployment", "moving", "--image=registry.example/any", "--replicas=4")
	k.shows(done, "rollout", "status", "deployment", "moving", "--timeout=3m")
	k.run("create", "pdb", "moving", "--selector=app=moving", "--min-available=3")
	k.run("run", "alone", "--image=registry.example/any", `--overrides={"spec":{"nodeName":"node-1"}}`)
	k.run("wait", "--for=condition=Ready", "pod/alone", "--timeout=3m")
	k.shows([]string{`cordoned$`}, "cordon", "node-1")
	k.shows([]string{`^node-1 +Ready,SchedulingDisabled `}, "get", "node", "node-1")
	k.refused("cannot delete", "drain", "node-1", "--ignore-daemonsets", "--timeout=3m")
	k.shows([]string{`node-1 drained \(server dry run\)`}, "drain", "node-1", "--force", "--ignore-daemonsets", "--dry-run=server")
	k.shows([]string{`^pod/alone evicted$`, `^node/node-1 drained$`}, "drain", "node-1", "--force", "--ignore-daemonsets", "--timeout=3m", "--delete-emptydir-data")
	k.shows([]string{`uncordoned$`}, "uncordon", "node-1")
	k.shows([]string{`tainted$`}, "taint", "node", "node-1", "example.com/why=tour:NoSchedule")
	k.shows([]string{`^Taints: +example.com/why=tour:NoSchedule$`}, "describe", "node", "node-1")
	k.shows([]string{`untainted$`}, "taint", "node", "node-1", "example.com/why-")
	k.awaitPods("app=moving", 4, "")
	k.comesToShow([]string{`pod/alone .*Successfully assigned|Evict|Created pod`}, "get", "events")
	k.comesToShow([]string{`Deployment/moving .*Scaled up replica set`}, "events", "--for=deployment/moving")
	k.comesToShow([]string{`Scaled up replica set`}, "get", "events.events.k8s.io", "--field-selector=reason=ScalingReplicaSet")
	k.run("delete", "deployment,pdb", "moving")
}

// notHereTour asks for what needs containers: the server refuses it and says why. What
// pods use is simulated.
func (k *kubectl) notHereTour() {
	k.t.Helper()
	k.run("run", "simulated", "--image=registry.example/any")
	k.run("wait", "--for=condition=Ready", "pod/simulated", "--timeout=3m")
	k.refused("logs are not available", "logs", "simulated")
	k.refused("exec is not available", "exec", "simulated", "--", "ls")
	k.refused("exec is not available", "cp", "simulated:/etc/hosts", filepath.Join(k.t.TempDir(), "hosts"))
	k.refused("attach is not available", "attach", "simulated")
	k.refused("portforward is not available", "port-forward", "simulated", ":80")
	k.comesToShow([]string{`^node-1 +\d+m +\d+%`}, "top", "nodes")
	k.comesToShow([]string{`^simulated +1m +8Mi`}, "top", "pods")
	// What debug asks the API server for is done; what is in the container is not.
	k.run("debug", "simulated", "--image=registry.example/debug", "--container=debugger", "--profile=general")
	k.shows([]string{`^debugger$`}, "get", "pod", "simulated", "-o", `jsonpath={.spec.ephemeralContainers[*].name}{"\n"}`)
	k.run("delete", "pod", "simulated")
}

// setsTour rolls out and back what is no Deployment.
func (k *kubectl) setsTour() {
	k.t.Helper()
	const manifest = `apiVersion: apps/v1
kind: %s
metadata: {name: members}
spec: {%s selector: {matchLabels: {app: members}}, template: {metadata: {labels: {app: members}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: "registry.example/any:1"}]}}}
`
	for kind, fields := range map[string]string{"StatefulSet": "serviceName: members, replicas: 2,", "DaemonSet": ""} {
		name := strings.ToLower(kind) + "/members"
		k.run("apply", "-f", k.file("members.yaml", fmt.Sprintf(manifest, kind, fields)))
		k.shows(done, "rollout", "status", name, "--timeout=3m")
		k.run("set", "image", name, "c=registry.example/any:2")
		k.shows(done, "rollout", "status", name, "--timeout=3m")
		k.run("rollout", "restart", name)
		k.shows(done, "rollout", "status", name, "--timeout=3m")
		k.shows([]string{`^1 `, `^2 `, `^3 `}, "rollout", "history", name)
		k.run("rollout", "undo", name, "--to-revision=1")
		k.shows(done, "rollout", "status", name, "--timeout=3m")
		k.shows([]string{`Image: +registry.example/any:1$`}, "describe", name)
		k.run("delete", name)
	}
}
