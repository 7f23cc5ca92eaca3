package noderestriction

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/podreference"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
)

// verbRequestAudience is the verb that a node needs on an audience, as the resource, to
// request tokens for it that none of the pod's volumes names.
const verbRequestAudience = "request-serviceaccounts-token-audience"

// admitToken refuses tokens that are not bound to a pod of the node, and those for an
// audience that the pod has no use for. What the node writes of accounts themselves is the
// authorizer's to refuse.
func (p *Plugin) admitToken(ctx context.Context, w *write) error {
	request, ok := w.Object.(*authenticationv1.TokenRequest)
	if w.Operation != registry.Create || w.Subresource != "token" || !ok {
		return nil
	}
	ref := request.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return w.forbid("node requested token not bound to a pod")
	case ref.UID == "":
		return w.forbid("node requested token with a pod binding without a uid")
	}
	pod, err := find[*corev1.Pod](ctx, p.set, "pods", w.Namespace, ref.Name)
	switch {
	case err != nil:
		return err
	case ref.UID != pod.UID:
		return w.forbid("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != w.node:
		return w.forbid("node requested token bound to a pod scheduled on a different node")
	}
	if err := p.checkAudience(ctx, w, request.Spec.Audiences, pod); err != nil {
		return w.forbid("%w", err)
	}
	return nil
}

func (p *Plugin) checkAudience(ctx context.Context, w *write, audiences []string, pod *corev1.Pod) error {
	audience := ""
	switch len(audiences) {
	case 0: // that of the server
	case 1:
		audience = audiences[0]
	default:
		return fmt.Errorf("node may only request 0 or 1 audiences")
	}
	named, err := p.namesAudience(ctx, pod, audience)
	switch {
	case named:
		return nil
	case err != nil:
		return fmt.Errorf("error validating audience %q: %w", audience, err)
	}
	decision, _, err := p.authorizer.Authorize(ctx, auth.Attributes{
		User: w.user, Verb: verbRequestAudience, Version: "v1", Resource: audience, Namespace: w.Namespace, Name: w.Name,
	})
	switch {
	case decision == auth.Allow:
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request tokens for audience %q: %w", w.user.Name, audience, err)
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", w.user.Name, audience)
}

// namesAudience reports whether a volume of the pod is one of tokens for the audience, or
// of a CSI driver that gets such tokens.
func (p *Plugin) namesAudience(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	search := audienceSearch{
		audience: audience,
		claim:    func(name string) (string, error) { return p.driverOfClaim(ctx, pod.Namespace, name) },
		driver: func(name string) (*storagev1.CSIDriver, error) {
			return findIn[*storagev1.CSIDriver](ctx, p.set, storagev1.GroupName, "csidrivers", "", name)
		},
		asked: sets.New[string](),
	}
	return search.in(pod)
}

// audienceSearch looks for the volumes of a pod that name an audience. A pod may have thousands of the same claim or driver:
// each of these is read once.
type audienceSearch struct {
	audience string
	claim    func(name string) (driver string, err error)
	driver   func(name string) (*storagev1.CSIDriver, error)
	asked    sets.Set[string] // claims and drivers that have no such tokens, or could not be read
}

func (s *audienceSearch) in(pod *corev1.Pod) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil {
			for j := range v.Projected.Sources {
				if token := v.Projected.Sources[j].ServiceAccountToken; token != nil && token.Audience == s.audience {
					return true, nil
				}
			}
		}
		named, err := s.namedByDriver(pod, v)
		if named {
			return true, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, utilerrors.NewAggregate(errs)
}

func (s *audienceSearch) namedByDriver(pod *corev1.Pod, v *corev1.Volume) (bool, error) {
	name, err := s.driverOf(pod, v)
	if err != nil || name == "" || s.wasAsked("driver/"+name) {
		return false, err
	}
	driver, err := s.driver(name)
	if err != nil {
		return false, err
	}
	for _, request := range driver.Spec.TokenRequests {
		if request.Audience == s.audience {
			return true, nil
		}
	}
	return false, nil
}

// wasAsked reports whether something was asked for before.
func (s *audienceSearch) wasAsked(what string) bool {
	if s.asked.Has(what) {
		return true
	}
	s.asked.Insert(what)
	return false
}

// driverOf returns the CSI driver that mounts a volume of a pod, or "".
func (s *audienceSearch) driverOf(pod *corev1.Pod, v *corev1.Volume) (string, error) {
	claim := ""
	switch {
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case v.PersistentVolumeClaim != nil:
		claim = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		claim = podreference.EphemeralClaim(pod, v)
	default:
		return migrated(v.AWSElasticBlockStore != nil, v.GCEPersistentDisk != nil, v.AzureDisk != nil, v.AzureFile != nil,
			v.Cinder != nil, v.VsphereVolume != nil, v.PortworxVolume != nil), nil
	}
	if s.wasAsked("claim/" + claim) {
		return "", nil
	}
	return s.claim(claim)
}

// driverOfClaim returns the CSI driver that mounts the volume of a claim, or "".
func (p *Plugin) driverOfClaim(ctx context.Context, namespace, name string) (string, error) {
	claim, err := find[*corev1.PersistentVolumeClaim](ctx, p.set, "persistentvolumeclaims", namespace, name)
	if err != nil {
		return "", err
	}
	volume, err := find[*corev1.PersistentVolume](ctx, p.set, "persistentvolumes", "", claim.Spec.VolumeName)
	if err != nil {
		return "", err
	}
	s := &volume.Spec
	if s.CSI != nil {
		return s.CSI.Driver, nil
	}
	return migrated(s.AWSElasticBlockStore != nil, s.GCEPersistentDisk != nil, s.AzureDisk != nil, s.AzureFile != nil,
		s.Cinder != nil, s.VsphereVolume != nil, s.PortworxVolume != nil), nil
}

// migrated returns the CSI driver that Kubernetes uses in place of the volume plugin that a
// volume is of (https://kubernetes.io/docs/concepts/storage/volumes/#csi-migration), or "".
func migrated(awsEBS, gcePD, azureDisk, azureFile, cinder, vsphere, portworx bool) string {
	switch {
	case awsEBS:
		return "ebs.csi.aws.com"
	case gcePD:
		return "pd.csi.storage.gke.io"
	case azureDisk:
		return "disk.csi.azure.com"
	case azureFile:
		return "file.csi.azure.com"
	case cinder:
		return "cinder.csi.openstack.org"
	case vsphere:
		return "csi.vsphere.vmware.com"
	case portworx:
		return "pxd.portworx.com"
	}
	return ""
}

// findIn is find in a group of the API.
func findIn[T resource.Object](ctx context.Context, set *registry.Set, group, plural, namespace, name string) (T, error) {
	r, ok := set.Lookup(group, "v1", plural)
	if !ok {
		var none T
		return none, fmt.Errorf("%s are not served", plural)
	}
	return registry.GetAs[T](ctx, r, namespace, name)
}
