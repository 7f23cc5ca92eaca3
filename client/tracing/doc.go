// Package tracing makes OpenTelemetry spans of what the client library does:
// one for each request, for each change that a handler gets, and for each call
// of a ReconcileFunc. It uses OpenTelemetry's API only; the program brings the
// SDK. Programs that do not import this package do not link OpenTelemetry.
//
//	t := tracing.New(provider, tracing.Options{})
//	c, err := client.New(cfg, client.Options{WrapTransport: t.WrapTransport})
//	ctl, err := controller.New(reconcile, controller.Options{Name: "greeter", Tracer: t})
//	pods.AddHandler(tracing.Handler(t, "audit", handler), informer.HandlerOptions{})
//
// What belongs together is one trace where that can be known: the change that
// enqueued a key is the parent of the call with that key, other changes that
// were merged into the call are links of it, as is the earlier call that asked
// for a retry, and requests that are sent with the call's context are its
// children. Requests carry a traceparent header. A change has a link to the
// request that made it if that was one of this process and its answer has been
// read before the watch delivered the change; watch events do not say who wrote.
package tracing
