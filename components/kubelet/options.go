package kubelet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Annotations of a pod that direct its simulation.
const (
	// AnnotationRunFor is how long the pod's containers run before they end
	// by themselves, as a Go duration ("90s"), whatever their commands are. It has
	// no meaning for pods that restart always.
	AnnotationRunFor = "kubelet.levelwire.dev/run-for"
	// AnnotationExitCode is what its containers exit with. Default: what their commands
	// say, or else 0.
	AnnotationExitCode = "kubelet.levelwire.dev/exit-code"
	// AnnotationExitCodeOfIndex is what the containers of an Indexed Job's pods exit
	// with, by completion index: "1=3,4=42" has those of index 1 exit with 3, and
	// those of index 4 with 42. Pods of other indexes follow AnnotationExitCode.
	AnnotationExitCodeOfIndex = "kubelet.levelwire.dev/exit-code-of-index"
	// AnnotationStopAfter is how long its containers take to stop once the
	// pod is deleted, as a Go duration. The pod's grace period is the limit.
	AnnotationStopAfter = "kubelet.levelwire.dev/stop-after"
	// AnnotationPullFails, "true", has none of its images exist.
	AnnotationPullFails = "kubelet.levelwire.dev/pull-fails"
)

// Options configures a Kubelet.
type Options struct {
	// NodeName is the name of the node to be. Default: the host's name.
	NodeName string
	// PodCIDR is where pods get their addresses from. Default: a /24 below
	// 10.64.0.0/10 that follows from the node's name.
	PodCIDR netip.Prefix
	// NodeIP is the node's own address. Default: the first of PodCIDR.
	NodeIP netip.Addr
	// Labels are added to the node's own.
	Labels map[string]string
	// Capacity is what the node offers. Default: 32 cores, 128 GiB of memory,
	// 1 TiB of ephemeral storage, 250 pods.
	Capacity corev1.ResourceList
	// StartAfter is how long a pod's containers take to start. Default 500 ms.
	StartAfter time.Duration
	// StopAfter is how long they take to stop, within the pod's grace period.
	// Default 200 ms.
	StopAfter time.Duration
	// RunFor is how long the containers of a Job's pod run whose command does not say it.
	// Default 2 s.
	RunFor time.Duration
	// LeaseDuration is the time after which others may take the node for
	// lost; it is renewed four times as often. Default 40 s.
	LeaseDuration time.Duration
	// Starting bounds, by its capacity, how many of the kubelets that share it register and
	// list their pods at a time: thousands that did so at once would have all to wait for
	// longer than a request may take. Default (nil): no bound.
	Starting chan struct{}
	// Workers is how many pods are worked on at once. Default 8.
	Workers int
	// Version is the kubelet version that kubectl get nodes shows.
	Version string
	// Logger receives what happens. Default: slog.Default().
	Logger *slog.Logger
}

// ensureDefaults fills absent members and refuses impossible ones.
func (o *Options) ensureDefaults() error {
	if o.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("no node name given, and the host's is not known: %w", err)
		}
		o.NodeName = host
	}
	if problems := validation.IsDNS1123Subdomain(o.NodeName); len(problems) > 0 {
		return fmt.Errorf("node name %q: %s", o.NodeName, problems[0])
	}
	if !o.PodCIDR.IsValid() {
		o.PodCIDR = subnetFor(o.NodeName)
	}
	if !o.PodCIDR.Addr().Is4() || o.PodCIDR.Bits() > 28 {
		return errors.New("the pod CIDR must be IPv4 and leave room for pods, such as 10.244.1.0/24")
	}
	if !o.NodeIP.IsValid() {
		o.NodeIP = o.PodCIDR.Masked().Addr().Next()
	}
	if o.Capacity == nil {
		o.Capacity = corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("32"),
			corev1.ResourceMemory:           resource.MustParse("128Gi"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
			corev1.ResourcePods:             resource.MustParse("250"),
		}
	}
	o.StartAfter = orDefault(o.StartAfter, 500*time.Millisecond)
	o.StopAfter = orDefault(o.StopAfter, 200*time.Millisecond)
	o.RunFor = orDefault(o.RunFor, 2*time.Second)
	o.LeaseDuration = orDefault(o.LeaseDuration, 40*time.Second)
	if o.LeaseDuration < time.Second {
		return errors.New("the lease duration must be a second at least: leases count whole seconds")
	}
	if o.Workers <= 0 {
		o.Workers = 8
	}
	if o.Version == "" {
		o.Version = "v1.37.0-levelwire"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
