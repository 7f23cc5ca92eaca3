// Package differential asks two servers the same and compares what they answer: a real
// kube-apiserver, the judge, and Levelwire.
//
// What is asked is generated from the judge's own discovery and OpenAPI documents, and from
// valid objects of each kind (folders objects and more). A request sets one or two fields of an
// object (generate.go, pairs.go), an unknown or repeated field (validation.go), or an option of a
// delete (delete.go). A readback creates an object and reads it (readback.go). A sequence writes and
// reads one object step by step (sequence.go, sequences.go). A request has a name, by which it can
// be asked again alone:
//
//	create apps/v1 Deployment small spec.replicas=-1
//
// Each answer is normalised by named rules (normalise.go), so that only what both servers
// decide is left. A difference belongs to a class and a group (compare.go, report.go), and
// is a failure unless declared.yaml says why it stands.
//
// The judge is built by `make judge`. What it has answered is kept in a file, so that the
// same question is not asked twice; it is started only for what is new.
//
// Of a fixed set of requests the answers stand in testdata, so that TestRecorded compares
// without the judge, in make test. `make record-differential` writes them: after a change
// of the objects, and for a new version of Kubernetes. How to run all this:
// docs/contributors/differential.md.
package differential
