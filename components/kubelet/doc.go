// Package kubelet simulates a node: it registers the node, renews its lease,
// watches the pods bound to it and reports what a kubelet would report, while
// no container runs. Everything it knows comes through client/informer and
// everything it says is written through the API.
//
// admission.go says which of the pods that are bound to it the node takes, and allocations.go what these hold;
// resize.go has them hold what they ask for later.
// plan.go is the heart: a pure function from a pod and a time to what is to be done, and when.
// containers.go moves the containers: what each does, says program.go, from annotations and from
// commands that are plain (sleep 5, exit 1); image.go says which images cannot be pulled.
package kubelet
