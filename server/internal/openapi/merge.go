package openapi

import (
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/levelwire/levelwire/internal/wirefield"
	"github.com/levelwire/levelwire/server/internal/resource/mergestrategy"
)

// addMergeStrategy adds the extensions of KEP-555 that say how server-side
// apply merges a field.
func (s *structReader) addMergeStrategy(p *spec.Schema, name string) {
	strategy := mergestrategy.OfField(s.typ, name)
	isList := p.Items != nil
	switch {
	case strategy.Kind == mergestrategy.Map:
		p.AddExtension("x-kubernetes-list-type", "map")
		p.AddExtension("x-kubernetes-list-map-keys", slices.Clone(strategy.Keys))
	case strategy.Kind == mergestrategy.Set:
		p.AddExtension("x-kubernetes-list-type", "set")
	case isList && (strategy.Kind == mergestrategy.Atomic || isApplied(s.typ)):
		p.AddExtension("x-kubernetes-list-type", "atomic")
	case strategy.Kind == mergestrategy.Atomic:
		p.AddExtension("x-kubernetes-map-type", "atomic")
	}
}

// isApplied reports whether client-go describes a type to clients that apply
// it: types of lists and reviews are in no object that is applied, and
// apiextensions is no part of client-go.
func isApplied(t reflect.Type) bool {
	if _, list := reflect.New(t).Interface().(metav1.ListInterface); list {
		return false
	}
	group, found := strings.CutPrefix(t.PkgPath(), "k8s.io/api/")
	if !found {
		return t.PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && !slices.Contains(neverApplied, t.Name())
	}
	return !strings.HasPrefix(group, "authentication/") && !strings.HasPrefix(group, "authorization/")
}

// neverApplied are the types of meta/v1 that are in no object that is applied.
var neverApplied = []string{"ListMeta", "FieldSelectorRequirement"}

// defaultOf returns the default that is published for a field: what its source
// says, or the zero value of a field that is always written.
func (s *structReader) defaultOf(f wirefield.Field) any {
	if strategy := mergestrategy.OfField(s.typ, f.Name); strategy.Kind == mergestrategy.KeyDefault {
		return strategy.Default
	}
	if marked, ok := defaults[s.name+"."+f.Name]; ok {
		return marked
	}
	if !f.OmitEmpty || f.Go.Type.Kind() == reflect.Struct {
		return zero(f.Go.Type)
	}
	return nil
}

// defaults are those that sources mark with +default, and that are not the zero
// value of a field that is always written. By model name and field.
var defaults = map[string]any{
	"io.k8s.api.apps.v1.ControllerRevision.data":                                nil,
	"io.k8s.api.certificates.v1.PodCertificateRequestSpec.maxExpirationSeconds": 86400,
	"io.k8s.api.core.v1.AzureDiskVolumeSource.cachingMode":                      "ReadWrite",
	"io.k8s.api.core.v1.AzureDiskVolumeSource.fsType":                           "ext4",
	"io.k8s.api.core.v1.AzureDiskVolumeSource.readOnly":                         false,
	"io.k8s.api.core.v1.AzureDiskVolumeSource.kind":                             "Shared",
	"io.k8s.api.core.v1.ConfigMapEnvSource.name":                                "",
	"io.k8s.api.core.v1.ConfigMapKeySelector.name":                              "",
	"io.k8s.api.core.v1.ConfigMapProjection.name":                               "",
	"io.k8s.api.core.v1.ConfigMapVolumeSource.name":                             "",
	"io.k8s.api.core.v1.FileKeySelector.optional":                               false,
	"io.k8s.api.core.v1.GRPCAction.service":                                     "",
	"io.k8s.api.core.v1.ISCSIPersistentVolumeSource.iscsiInterface":             "default",
	"io.k8s.api.core.v1.ISCSIVolumeSource.iscsiInterface":                       "default",
	"io.k8s.api.core.v1.RBDPersistentVolumeSource.pool":                         "rbd",
	"io.k8s.api.core.v1.RBDPersistentVolumeSource.user":                         "admin",
	"io.k8s.api.core.v1.RBDPersistentVolumeSource.keyring":                      "/etc/ceph/keyring",
	"io.k8s.api.core.v1.RBDVolumeSource.pool":                                   "rbd",
	"io.k8s.api.core.v1.RBDVolumeSource.user":                                   "admin",
	"io.k8s.api.core.v1.RBDVolumeSource.keyring":                                "/etc/ceph/keyring",
	"io.k8s.api.core.v1.ReplicationControllerSpec.replicas":                     1,
	"io.k8s.api.core.v1.ReplicationControllerSpec.minReadySeconds":              0,
	"io.k8s.api.core.v1.ScaleIOPersistentVolumeSource.storageMode":              "ThinProvisioned",
	"io.k8s.api.core.v1.ScaleIOPersistentVolumeSource.fsType":                   "xfs",
	"io.k8s.api.core.v1.ScaleIOVolumeSource.storageMode":                        "ThinProvisioned",
	"io.k8s.api.core.v1.ScaleIOVolumeSource.fsType":                             "xfs",
	"io.k8s.api.core.v1.SecretEnvSource.name":                                   "",
	"io.k8s.api.core.v1.SecretKeySelector.name":                                 "",
	"io.k8s.api.core.v1.SecretProjection.name":                                  "",
	"io.k8s.api.resource.v1.DeviceToleration.operator":                          "Equal",
	"io.k8s.api.resource.v1.OpaqueDeviceConfiguration.parameters":               nil,
}

// union names the fields of a struct of which one excludes the others.
type union struct {
	discriminator string            // the field that says which one is set; may be ""
	fields        map[string]string // field -> value of the discriminator
}

// unions are those of the built-in kinds, by model name.
var unions = map[string]union{
	"io.k8s.api.core.v1.AppArmorProfile":                              {"type", map[string]string{"localhostProfile": "LocalhostProfile"}},
	"io.k8s.api.core.v1.PodSchedulingGroup":                           {"", map[string]string{"podGroupName": "PodGroupName"}},
	"io.k8s.api.core.v1.SeccompProfile":                               {"type", map[string]string{"localhostProfile": "LocalhostProfile"}},
	"io.k8s.api.flowcontrol.v1.LimitResponse":                         {"type", map[string]string{"queuing": "Queuing"}},
	"io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec":        {"type", map[string]string{"exempt": "Exempt", "limited": "Limited"}},
	"io.k8s.api.flowcontrol.v1.Subject":                               {"kind", map[string]string{"group": "Group", "serviceAccount": "ServiceAccount", "user": "User"}},
	"io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupDisruptionMode":   {"", map[string]string{"all": "All", "single": "Single"}},
	"io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSchedulingPolicy": {"", map[string]string{"basic": "Basic", "gang": "Gang"}},
}

// extension is the form in which a union is published.
func (u union) extension() map[string]any {
	published := map[string]any{"fields-to-discriminateBy": u.fields}
	if u.discriminator != "" {
		published["discriminator"] = u.discriminator
	}
	return published
}
