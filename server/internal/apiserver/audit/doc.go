// Package audit writes the audit log: which user asked for what, and what came of it,
// as Kubernetes' audit.k8s.io/v1 events, by a policy. Auditor decides by the policy
// which requests are audited; a Request gathers the events of one of them.
//
// Start reading at Auditor in auditor.go, then request.go (the stages of a request) and
// bodies.go (objects as JSON). Events go to a queue for each backend (queue.go), which
// never blocks a request: what does not fit is lost, and counted. log.go writes a file,
// webhook.go posts to a server.
//
// Policy, event types, encoding, the log's formats and truncation are
// k8s.io/apiserver's. Its package buffered is not used: it bounds the number of events
// and not their bytes, sends any number of batches at a time, and logs every event that
// it drops while the request waits. Nor is its webhook, whose calls nothing can end.
package audit
