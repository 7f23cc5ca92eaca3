package builtin_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// TestUpdatesAreRefusedInOrder: what is said of a change, and of the object that it makes, has the
// order and the words of kube-apiserver.
func TestUpdatesAreRefusedInOrder(t *testing.T) {
	const (
		unsaid   = ": Invalid value: null: field is immutable"
		deadline = "spec.activeDeadlineSeconds: Invalid value: "
	)
	for _, tt := range []struct {
		kind       string
		old, edits []string
		want       []string
	}{
		{"daemonset", nil, []string{"spec.selector={matchLabels: {a: b}}", "spec.minReadySeconds=-1"}, []string{
			`spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable`,
			"spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
			"spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
		}},
		{"statefulset", nil, []string{"spec.serviceName=Other", "spec.podManagementPolicy=Parallel"}, []string{
			`spec.serviceName: Invalid value: "Other": field is immutable`, `spec.podManagementPolicy: Invalid value: "Parallel": field is immutable`,
		}},
		// What an older server has allowed in the template stays allowed.
		{"statefulset", []string{"spec.template.spec.dnsPolicy=Other"}, []string{"spec.template.spec.dnsPolicy=Other", "spec.replicas=9"}, nil},
		{"statefulset", []string{"spec.template.spec.dnsPolicy=Other"}, []string{"spec.template.spec.restartPolicy=Never"}, []string{
			`spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`,
		}},
		{"priorityclass", nil, []string{"preemptionPolicy=''", "value=3"}, []string{
			"value: Forbidden: may not be changed in an update.", `preemptionPolicy: Invalid value: "": field is immutable`,
		}},
		{"ingressclass", nil, []string{"spec.controller="}, []string{
			`spec.controller: Invalid value: "": field is immutable`, "spec.controller: Required value",
		}},
		{"ipaddress", nil, []string{"spec.parentRef.name=other"}, []string{"spec.parentRef" + unsaid}},
		{"attachment", nil, []string{"spec.nodeName=other"}, []string{"spec" + unsaid}},
		{"attachment", nil, []string{"spec={}"}, []string{
			"spec.attacher: Required value", "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
			`spec.nodeName: Invalid value: "": ` + validation.IsDNS1123Subdomain("")[0], "spec" + unsaid,
		}},
		{"runtimeclass", nil, []string{"handler=other"}, []string{"handler" + unsaid}},
		{"runtimeclass", nil, []string{"handler=''"}, []string{"handler" + unsaid, "handler: Required value"}},
		{"runtimeclass", nil, []string{"handler=''", "overhead.podFixed={cpu: -1}"}, []string{
			`overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`, "handler" + unsaid, "handler: Required value",
		}},
		{"storageclass", nil, []string{"provisioner=other.example.com", "reclaimPolicy=Retain"}, []string{"provisioner" + unsaid, "reclaimPolicy" + unsaid}},
		{"attributesclass", nil, []string{"driverName=''"}, []string{"driverName: Forbidden: updates to driverName are forbidden.", "driverName: Required value"}},
		{"endpointslice", nil, []string{"addressType=Other", "endpoints=[]"}, []string{
			`addressType: Unsupported value: "Other": supported values: "FQDN", "IPv4", "IPv6"`, "addressType" + unsaid,
		}},
		{"endpointslice", nil, []string{"addressType=''", "ports=[{port: 1}, {port: 2}]"}, []string{
			`ports[1].name: Duplicate value: ""`, "addressType: Required value", "addressType" + unsaid,
		}},
		{"quota", nil, []string{"spec.scopes=[NotTerminating, NotTerminating]"}, nil},
		{"quota", []string{"spec.scopes=[BestEffort]"}, nil, []string{`spec.scopes: Invalid value: ["NotTerminating"]: field is immutable`}},
		{"pod", []string{"spec.activeDeadlineSeconds=5"}, []string{"spec.activeDeadlineSeconds=9", "spec.nodeName=other"}, []string{deadline + "9: must be less than or equal to previous value"}},
		{"pod", nil, []string{"spec.activeDeadlineSeconds=-1"}, []string{
			deadline + "-1: must be between 1 and 2147483647, inclusive", deadline + "-1: must be between 0 and 2147483647, inclusive",
		}},
	} {
		r, old := manifest(t, tt.kind, tt.old...)
		_, obj := manifest(t, tt.kind, tt.edits...)
		got := said(validateChanged(r, obj, old))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %v, then %v:\n%q\nnot\n%q", tt.kind, tt.old, tt.edits, got, tt.want)
		}
	}
}

// validateChanged is the validation of a kind for an object that replaces another, but for names.
func validateChanged(r *resource.Resource, obj, old resource.Object) field.ErrorList {
	var errs field.ErrorList
	if f := r.Strategy.ValidateUnchanged; f != nil {
		errs = f(obj, old)
	}
	if f := r.Strategy.Validate; f != nil {
		errs = append(errs, f(obj)...)
	}
	if f := r.Strategy.ValidateUpdate; f != nil {
		errs = append(errs, f(obj, old)...)
	}
	return errs
}
