//go:build deps

// Package deps pins modules until the packages that import them exist.
package deps

import (
	_ "gopkg.in/evanphx/json-patch.v4"
	_ "github.com/go-json-experiment/json/jsontext"
	_ "github.com/google/uuid"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/spf13/cobra"
	_ "go.etcd.io/etcd/server/v3/embed"
	_ "go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	_ "go.etcd.io/etcd/client/pkg/v3/transport"
	_ "go.uber.org/goleak"
	_ "go.uber.org/zap"
	_ "golang.org/x/net/http2"
	_ "golang.org/x/net/websocket"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/time/rate"
	_ "k8s.io/client-go/kubernetes/scheme"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/client-go/transport"
	_ "k8s.io/apimachinery/pkg/util/strategicpatch"
	_ "k8s.io/apimachinery/pkg/util/managedfields"
	_ "k8s.io/apimachinery/pkg/util/jsonmergepatch"
	_ "k8s.io/api/apidiscovery/v2"
	_ "k8s.io/kube-openapi/pkg/handler3"
	_ "k8s.io/component-helpers/scheduling/corev1"
	_ "sigs.k8s.io/yaml"
)
