// Package upstream runs Kubernetes' own controller manager, scheduler and kubelet against
// two servers, Levelwire and kube-apiserver, and compares what comes of it.
//
// A flow (folder testdata) is a list of kubectl's command lines, which run one after another
// in a namespace of their own, and say at last which objects are compared. These must be the
// same on both servers, but for what each server chooses: names, times, addresses.
//
// What the components log as errors on Levelwire and not on kube-apiserver, or far more often, is
// a failure unless declared.go says why it stands.
//
// With -upstream.faults, something fails on Levelwire's side while the flows run, or Levelwire is a relay in front of another
// kube-apiserver: faults.go says what. While something fails only the objects are compared.
//
// `make test-upstream` builds the components, with kube-apiserver, from the published modules,
// and runs this.
package upstream
