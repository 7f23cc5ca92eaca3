package conformance

import (
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var applyGuarantees = []Guarantee{
	{Name: "apply/creates", Source: sourceApply, check: checkApplyCreates,
		Sentence: "What is applied and is not there is created, with a 201, and belongs to its manager."},
	{Name: "apply/same-again", Source: sourceApply, check: checkApplySame,
		Sentence: "Applying the same again writes nothing: the version stays."},
	{Name: "apply/conflict", Source: sourceApply, check: checkApplyConflict,
		Sentence: "A field that another manager owns is a 409 with a cause that names manager and field."},
	{Name: "apply/force", Source: sourceApply, check: checkApplyForce,
		Sentence: "Forced, the apply takes the field over, and the other manager owns it no more."},
	{Name: "apply/left-out", Source: sourceApply, check: checkApplyLeftOut,
		Sentence: "A field that its last manager leaves out is removed; what others own stays."},
	{Name: "apply/needs-manager", Source: sourceApply, check: checkApplyNeedsManager,
		Sentence: "An apply without fieldManager is a 422 Invalid."},
	{Name: "apply/updates-own", Source: sourceApply, check: checkUpdatesOwn,
		Sentence: "Other writes own what they change, in the name of fieldManager or of the User-Agent, and conflict with a manager that applies."},
}

// apply applies data to a ConfigMap in the name of a manager. more is appended
// to the query.
func (e *Env) apply(name, manager, data, more string) request {
	e.remember(e.configMaps() + "/" + name)
	return request{
		method: http.MethodPatch, path: e.configMaps() + "/" + name + "?fieldManager=" + manager + more,
		headers: []string{"Content-Type: application/apply-patch+yaml"},
		body:    fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {%s}\n", name, data),
	}
}

// applied is apply that has to succeed with a code.
func (e *Env) applied(code int, r request) object {
	a := e.do(r)
	if a.code != code {
		e.failf("an apply that has to be answered with %d: %s", code, a)
	}
	var o object
	e.must(a.decode(&o))
	return o
}

// manages says whether an object has an entry of a manager.
func (o object) manages(manager string, operation metav1.ManagedFieldsOperationType) bool {
	for _, entry := range o.Metadata.ManagedFields {
		if entry.Manager == manager && entry.Operation == operation && entry.FieldsType == "FieldsV1" && entry.APIVersion == "v1" {
			return true
		}
	}
	return false
}

// owns says whether an entry of the manager has the key of data. What is left
// of an entry that has lost its last key, data itself or nothing, is the server's
// affair.
func (o object) owns(manager, key string) bool {
	for _, entry := range o.Metadata.ManagedFields {
		if entry.Manager == manager && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+key+`"`) {
			return true
		}
	}
	return false
}

func checkApplyCreates(e *Env) {
	made := e.applied(http.StatusCreated, e.apply("a", "one", "k: '1'", ""))
	if made.Data["k"] != "1" || !made.manages("one", metav1.ManagedFieldsOperationApply) {
		e.failf("created %v with managedFields %v", made.Data, made.Metadata.ManagedFields)
	}
}

func checkApplySame(e *Env) {
	made := e.applied(http.StatusCreated, e.apply("a", "one", "k: '1'", ""))
	if again := e.applied(http.StatusOK, e.apply("a", "one", "k: '1'", "")); again.version() != made.version() {
		e.failf("version %s became %s", made.version(), again.version())
	}
}

func checkApplyConflict(e *Env) {
	e.applied(http.StatusCreated, e.apply("a", "one", "k: '1'", ""))
	a := e.do(e.apply("a", "two", "k: '2'", ""))
	status, err := a.status()
	e.must(err)
	want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "one"`, Field: ".data.k"}
	if a.code != http.StatusConflict || status.Reason != metav1.StatusReasonConflict || status.Details == nil ||
		len(status.Details.Causes) != 1 || status.Details.Causes[0] != want {
		e.failf("want a 409 Conflict with the cause %+v, not %s", want, a)
	}
	if seen := e.getObject("a", ""); seen.Data["k"] != "1" {
		e.failf("the refused apply was written: %v", seen.Data)
	}
}

func checkApplyForce(e *Env) {
	e.applied(http.StatusCreated, e.apply("a", "one", "k: '1'", ""))
	taken := e.applied(http.StatusOK, e.apply("a", "two", "k: '2'", "&force=true"))
	if taken.Data["k"] != "2" || taken.owns("one", "k") || !taken.owns("two", "k") {
		e.failf("forced: %v, managedFields %v", taken.Data, taken.Metadata.ManagedFields)
	}
}

func checkApplyLeftOut(e *Env) {
	e.applied(http.StatusCreated, e.apply("a", "one", "k: '1', l: '1'", ""))
	e.applied(http.StatusOK, e.apply("a", "two", "m: '1'", ""))
	e.applied(http.StatusOK, e.apply("a", "one", "l: '1'", ""))
	seen := e.getObject("a", "")
	if _, there := seen.Data["k"]; there || seen.Data["l"] != "1" || seen.Data["m"] != "1" {
		e.failf("left out k: %v", seen.Data)
	}
}

func checkApplyNeedsManager(e *Env) {
	e.refuses(e.apply("a", "", "k: '1'", ""), want{code: http.StatusUnprocessableEntity, reason: metav1.StatusReasonInvalid})
}

func checkUpdatesOwn(e *Env) {
	made := e.create("a")
	if !made.manages("levelwire-verify", metav1.ManagedFieldsOperationUpdate) {
		e.failf("created by levelwire-verify: managedFields %v", made.Metadata.ManagedFields)
	}
	e.refuses(e.apply("a", "one", "content: 'other'", ""), want{code: http.StatusConflict, reason: metav1.StatusReasonConflict})
}
