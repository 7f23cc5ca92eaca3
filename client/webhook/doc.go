// Package webhook serves admission and conversion webhooks: functions that an
// API server calls before it stores an object, and to convert custom resources
// from one API version to another.
//
//	server, err := webhook.New(webhook.Options{
//		CertFile: "/certs/tls.crt", KeyFile: "/certs/tls.key",
//		Handlers: map[string]http.Handler{
//			"/validate-widget": webhook.Validate(validateWidget),
//			"/mutate-widget":   webhook.Mutate(defaultWidget),
//			"/convert":         webhook.Convert(webhook.Between(alpha, stable, toStable, toAlpha)),
//		},
//	})
//	err = controller.Run(ctx, controller.RunOptions{Factory: factory}, c, server)
//
// It speaks AdmissionReview of admission.k8s.io/v1 and ConversionReview of
// apiextensions.k8s.io/v1. The handlers are http.Handlers, which a program may
// also serve by itself, and tests may call.
//
// The server reads certificates again when their files change, bounds the size
// and the time of a review and how many run at once, and finishes those that
// run when it stops.
package webhook
