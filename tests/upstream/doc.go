// Package upstream runs Kubernetes' own controller manager, scheduler, kubelet and service proxy against
// two servers, Levelwire and kube-apiserver, and compares what comes of it.
//
// A flow (folder testdata) is a list of kubectl's command lines, which run one after another
// in a namespace of their own, with steps in between that say which objects are compared, where
// pods have to be, and what components have to log. The objects must be the same on both
// servers, but for what each server chooses: names, times, addresses.
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
