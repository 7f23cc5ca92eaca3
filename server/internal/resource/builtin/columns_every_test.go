package builtin_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin"
	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// headers lists the columns of every kind that has its own, as group/version
// Kind, then the headers, and behind the bar those of -o wide.
const headers = `
v1 ComponentStatus: Name, Status, Message, Error
v1 ConfigMap: Name, Data, Age
v1 Endpoints: Name, Endpoints, Age
v1 Event: Last Seen, Type, Reason, Object, Message | Subobject, Source, First Seen, Count, Name
v1 LimitRange: Name, Created At
v1 Namespace: Name, Status, Age
v1 Node: Name, Status, Roles, Age, Version | Internal-IP, External-IP, OS-Image, Kernel-Version, Container-Runtime
v1 PersistentVolume: Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age | VolumeMode
v1 PersistentVolumeClaim: Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age | VolumeMode
v1 Pod: Name, Ready, Status, Restarts, Age | IP, Node, Nominated Node, Readiness Gates
v1 PodTemplate: Name, Containers, Images, Pod Labels
v1 ReplicationController: Name, Desired, Current, Ready, Age | Containers, Images, Selector
v1 ResourceQuota: Name, Request, Limit, Age
v1 Secret: Name, Type, Data, Age
v1 Service: Name, Type, Cluster-IP, External-IP, Port(s), Age | Selector
v1 ServiceAccount: Name, Age
admissionregistration.k8s.io/v1 MutatingAdmissionPolicy: Name, Mutations, ParamKind, Age
admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding: Name, PolicyName, ParamRef, Age
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration: Name, Webhooks, Age
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: Name, Validations, ParamKind, Age
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding: Name, PolicyName, ParamRef, Age
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration: Name, Webhooks, Age
apps/v1 ControllerRevision: Name, Controller, Revision, Age
apps/v1 DaemonSet: Name, Desired, Current, Ready, Up-to-date, Available, Node Selector, Age | Containers, Images, Selector
apps/v1 Deployment: Name, Ready, Up-to-date, Available, Age | Containers, Images, Selector
apps/v1 ReplicaSet: Name, Desired, Current, Ready, Age | Containers, Images, Selector
apps/v1 StatefulSet: Name, Ready, Age | Containers, Images
autoscaling/v1 HorizontalPodAutoscaler: Name, Reference, Targets, MinPods, MaxPods, Replicas, Age
autoscaling/v1 Scale: Name, Desired, Available, Age
autoscaling/v2 HorizontalPodAutoscaler: Name, Reference, Targets, MinPods, MaxPods, Replicas, Age
batch/v1 CronJob: Name, Schedule, Timezone, Suspend, Active, Last Schedule, Age | Containers, Images, Selector
batch/v1 Job: Name, Status, Completions, Duration, Age | Containers, Images, Selector
certificates.k8s.io/v1 CertificateSigningRequest: Name, Age, SignerName, Requestor, RequestedDuration, Condition
certificates.k8s.io/v1 ClusterTrustBundle: Name, SignerName
certificates.k8s.io/v1 PodCertificateRequest: Name, PodName, ServiceAccountName, NodeName, SignerName, State, UnverifiedUserAnnotations
coordination.k8s.io/v1 Lease: Name, Holder, Age
coordination.k8s.io/v1beta1 LeaseCandidate: Name, LeaseName, BinaryVersion, EmulationVersion, Age
discovery.k8s.io/v1 EndpointSlice: Name, AddressType, Ports, Endpoints, Age
events.k8s.io/v1 Event: Last Seen, Type, Reason, Object, Message | Subobject, Source, First Seen, Count, Name
flowcontrol.apiserver.k8s.io/v1 FlowSchema: Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration: Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age
internal.apiserver.k8s.io/v1alpha1 StorageVersion: Name, CommonEncodingVersion, StorageVersions, Age
networking.k8s.io/v1 IPAddress: Name, ParentRef
networking.k8s.io/v1 Ingress: Name, Class, Hosts, Address, Ports, Age
networking.k8s.io/v1 IngressClass: Name, Controller, Parameters, Age
networking.k8s.io/v1 NetworkPolicy: Name, Pod-Selector, Age
networking.k8s.io/v1 ServiceCIDR: Name, CIDRs, Age
node.k8s.io/v1 RuntimeClass: Name, Handler, Age
policy/v1 PodDisruptionBudget: Name, Min Available, Max Unavailable, Allowed Disruptions, Age
rbac.authorization.k8s.io/v1 ClusterRole: Name, Created At
rbac.authorization.k8s.io/v1 ClusterRoleBinding: Name, Role, Age | Users, Groups, ServiceAccounts
rbac.authorization.k8s.io/v1 Role: Name, Created At
rbac.authorization.k8s.io/v1 RoleBinding: Name, Role, Age | Users, Groups, ServiceAccounts
resource.k8s.io/v1 DeviceClass: Name, Age
resource.k8s.io/v1 ResourceClaim: Name, State, Age
resource.k8s.io/v1 DeviceTaintRule: Name, Key, Value, Effect, TimeAdded, Age
resource.k8s.io/v1 ResourceClaimTemplate: Name, Age
resource.k8s.io/v1 ResourceSlice: Name, Node, Driver, Pool, Age
scheduling.k8s.io/v1 PriorityClass: Name, Value, Global-Default, Age, PreemptionPolicy
storage.k8s.io/v1 CSIDriver: Name, AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age
storage.k8s.io/v1 CSINode: Name, Drivers, Age
storage.k8s.io/v1 CSIStorageCapacity: Name, Created At
storage.k8s.io/v1 StorageClass: Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age
storage.k8s.io/v1 VolumeAttachment: Name, Attacher, PV, Node, Attached, Age
storage.k8s.io/v1 VolumeAttributesClass: Name, DriverName, Age
apiextensions.k8s.io/v1 CustomResourceDefinition: Name, Scope, Versions, Created At | Group, Kind, ShortNames, Established
apiregistration.k8s.io/v1 APIService: Name, Service, Available, Age
storagemigration.k8s.io/v1 StorageVersionMigration: Name, Resource, Status
`

func TestHeaders(t *testing.T) {
	seen := map[schema.GroupVersionKind]bool{}
	for line := range strings.Lines(strings.TrimSpace(headers)) {
		id, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		apiVersion, kind, _ := strings.Cut(id, " ")
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		seen[gvk] = true
		var narrow, wide []string
		definitions, _ := builtin.Columns(gvk)
		for _, c := range definitions {
			if c.Priority == 0 {
				narrow = append(narrow, c.Name)
			} else {
				wide = append(wide, c.Name)
			}
		}
		got := strings.Join(narrow, ", ")
		if wide != nil {
			got += " | " + strings.Join(wide, ", ")
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", id, got, want)
		}
	}
	for gvk := range builtin.Layouts {
		if !seen[gvk] {
			t.Errorf("%s has columns that this test does not list", gvk)
		}
	}
}

// The definitions of custom resources are in a scheme of their own.
var _ = apiextensionsv1.AddToScheme(scheme.Scheme)

// The same is true of API services.
var _ = apiregistrationv1.AddToScheme(scheme.Scheme)

// undescribed are the columns of which kube-apiserver says nothing. Any other has a description; which, TestRecorded in tests/differential
// compares.
var undescribed = []string{"LeaseCandidate BinaryVersion", "LeaseCandidate EmulationVersion", "RuntimeClass Handler"}

func TestColumnDefinitions(t *testing.T) {
	for gvk, l := range builtin.Layouts {
		names := map[string]bool{}
		formats := 0
		for _, c := range l.Columns {
			if c.Name == "" || names[c.Name] {
				t.Errorf("%s: column %+v: wants a name of its own", gvk, c)
			}
			if (c.Description == "") != slices.Contains(undescribed, gvk.Kind+" "+c.Name) {
				t.Errorf("%s: column %s has the description %q", gvk, c.Name, c.Description)
			}
			names[c.Name] = true
			if !slices.Contains([]string{"string", "integer", "boolean", "date"}, c.Type) {
				t.Errorf("%s: column %s has the type %q", gvk, c.Name, c.Type)
			}
			if c.Format == "name" {
				formats++
			}
		}
		want := 1         // kubectl needs one
		switch gvk.Kind { // as Kubernetes has them
		case "VolumeAttachment":
			want = 2 // the attacher, too
		case "Scale", "StorageVersionMigration":
			want = 0
		}
		if formats != want {
			t.Errorf("%s: %d columns have the format name, want %d", gvk, formats, want)
		}
	}
}

// objects calls visit for every kind of client-go's scheme that has metadata.
func objects(t *testing.T, visit func(gvk schema.GroupVersionKind, newObject func() resource.Object)) {
	t.Helper()
	visited := 0
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		if _, ok := reflect.New(goType).Interface().(resource.Object); !ok {
			continue // lists, options
		}
		visited++
		visit(gvk, func() resource.Object { return reflect.New(goType).Interface().(resource.Object) })
	}
	if visited < 100 {
		t.Fatalf("the scheme has %d kinds, so this test tests nothing", visited)
	}
}

func TestEveryKindEmptyAndFilled(t *testing.T) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	fill.NilChance(0.5).NumElements(0, 2).MaxDepth(12)
	objects(t, func(gvk schema.GroupVersionKind, newObject func() resource.Object) {
		definitions, row := builtin.Columns(gvk)
		check := func(obj resource.Object) {
			cells := row(obj)
			if len(cells) != len(definitions) {
				t.Fatalf("%s: %d cells for %d columns", gvk, len(cells), len(definitions))
			}
			for i, cell := range cells {
				switch cell.(type) {
				case string, int64, bool:
				default:
					t.Errorf("%s: the cell of %s is a %T", gvk, definitions[i].Name, cell)
				}
			}
			if _, err := json.Marshal(cells); err != nil {
				t.Errorf("%s: %v", gvk, err)
			}
		}
		check(newObject())
		for range 5 {
			obj := newObject()
			fill.Fill(obj)
			check(obj)
		}
	})
}

// A layout made for another Go type than the kind's would show "<unknown>"
// everywhere instead of failing.
func TestEveryLayoutFitsItsKind(t *testing.T) {
	for gvk, l := range builtin.Layouts {
		made, err := scheme.Scheme.New(gvk)
		if err != nil {
			t.Errorf("%s is not a kind: %v", gvk, err)
			continue
		}
		if reflect.DeepEqual(l.Columns, columns.NameAndAge().Columns) {
			continue
		}
		obj := made.(resource.Object)
		if cells := l.Cells(obj, epoch); reflect.DeepEqual(cells, columns.MetadataCells(l.Columns, obj, epoch)) {
			t.Errorf("%s: the layout does not know %T: %v", gvk, obj, cells)
		}
	}
}

func TestUnknownKind(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName("main")
	obj.SetCreationTimestamp(ago(90 * time.Second))
	definitions, row := at(epoch).For(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gateway"})
	if len(definitions) != 2 || definitions[0].Name != "Name" || definitions[1].Name != "Age" {
		t.Errorf("columns: %+v", definitions)
	}
	wantCells(t, row(obj), "main", "90s")
}

func TestWrongGoType(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: createdAgo("c", time.Minute)}
	_, row := at(epoch).For(corev1.SchemeGroupVersion.WithKind("Secret"))
	wantCells(t, row(obj), "c", columns.Unknown, columns.Unknown, "60s")
	wantCells(t, row(nil), columns.Unknown, columns.Unknown, columns.Unknown, columns.Unknown)
}

func TestCallerOwnsColumns(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	mine, _ := builtin.Columns(gvk)
	mine[0].Name = "Mine"
	if again, _ := builtin.Columns(gvk); again[0].Name != "Name" {
		t.Error("changing the columns changes them for everybody")
	}
}

func TestClock(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	obj := &corev1.ConfigMap{ObjectMeta: createdAgo("c", time.Hour)}
	now := epoch
	_, row := builtin.Printer{Now: func() time.Time { return now }}.For(gvk)
	wantCells(t, row(obj), "c", int64(0), "60m")
	now = now.Add(2 * time.Hour)
	wantCells(t, row(obj), "c", int64(0), "3h")

	_, row = builtin.Columns(gvk)
	obj.CreationTimestamp = metav1.NewTime(time.Now().Add(-48 * time.Hour))
	wantCells(t, row(obj), "c", int64(0), "2d")
}

func BenchmarkPodRow(b *testing.B) {
	_, row := builtin.Columns(corev1.SchemeGroupVersion.WithKind("Pod"))
	obj := runningPod()
	b.ReportAllocs()
	for b.Loop() {
		row(obj)
	}
}
