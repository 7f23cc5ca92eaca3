package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
	"github.com/levelwire/levelwire/server"
)

const (
	scheduler = "scheduler"
	monitor   = "monitor"
	driver    = "system:serviceaccount:default:driver"

	claimBinding = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="%[2]s" permission: ` +
		`resourceclaims.resource.k8s.io is forbidden: User %[1]q cannot %[2]s resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`
	claimReport = `changing status.devices requires resource="resourceclaims/driver", verb="[%[2]s]" permission: ` +
		`resourceclaims.resource.k8s.io %[4]q is forbidden: User %[1]q cannot %[3]s resource "resourceclaims/driver" in API group "resource.k8s.io" in the namespace "default"`
)

// claims is a server whose users all may write the status of claims. Only the scheduler may bind them; the driver's
// account may report about driver.example.com from the claim's node, and the monitor from anywhere.
type claims struct {
	*cluster
	server *levelwiretest.Server
}

func startClaims(t *testing.T, change ...func(*server.Config)) *claims {
	t.Helper()
	s := levelwiretest.Start(t, change...)
	c := &claims{&cluster{s.Client(client.Options{}), t}, s}
	on := func(resource, name string, verbs ...string) rbacv1.PolicyRule {
		rule := rbacv1.PolicyRule{APIGroups: []string{resourcev1.GroupName}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			rule.ResourceNames = []string{name}
		}
		return rule
	}
	status := on("resourceclaims/status", "", "update", "patch")
	c.allow(scheduler, status, on("resourceclaims/binding", "", "update"))
	c.allow(driver, status, on("resourceclaims/driver", "driver.example.com", "associated-node:update"))
	c.allow(monitor, status, on("resourceclaims/driver", "driver.example.com", "arbitrary-node:patch"))
	return c
}

func (c *claims) allow(user string, rules ...rbacv1.PolicyRule) {
	c.t.Helper()
	name := strings.ReplaceAll(user, ":", "-")
	createCluster(c.cluster, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	createCluster(c.cluster, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// as returns the claims as a user writes them, with the token of a pod on a node unless that is "".
func (c *claims) as(user, node string) client.Resource[*resourcev1.ResourceClaim] {
	c.t.Helper()
	config := c.server.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	if node != "" {
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	connected, err := client.New(config, client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(connected.CloseIdleConnections)
	return client.For[*resourcev1.ResourceClaim](connected).Namespace("default")
}

// create makes a claim, which is allocated to a device on a node unless that is "".
func (c *claims) create(name, node string) *resourcev1.ResourceClaim {
	c.t.Helper()
	claim, err := create(c.cluster, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "class"}}}},
	}})
	if err == nil && node != "" {
		claim.Status.Allocation = allocation(node)
		claim, err = client.For[*resourcev1.ResourceClaim](c.Client).Namespace("default").UpdateStatus(c.t.Context(), claim, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return claim
}

func allocation(node string) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "r", Driver: "driver.example.com", Pool: "pool", Device: "device"},
		}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}
}

// report has the claim's driver, or another one, say something of a device.
func report(claim *resourcev1.ResourceClaim, driver string) *resourcev1.ResourceClaim {
	claim = claim.DeepCopy()
	claim.Status.Devices = append(claim.Status.Devices, resourcev1.AllocatedDeviceStatus{Driver: driver, Pool: "pool", Device: "device"})
	return claim
}

// refusals returns the fields and messages of the causes of a 422; an error that is none fails the test.
func refusals(t *testing.T, what string, err error) (causes []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused *apierrors.StatusError
	if !apierrors.IsInvalid(err) || !errors.As(err, &refused) {
		t.Fatalf("%s: %v", what, err)
	}
	for _, cause := range refused.ErrStatus.Details.Causes {
		causes = append(causes, cause.Field+": "+cause.Message)
	}
	return causes
}

// mustRefuse compares the beginnings of the causes: the authorizer's reason may follow.
func mustRefuse(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	causes := refusals(t, what, err)
	if len(causes) != len(want) {
		t.Errorf("%s: %q, want %q", what, causes, want)
		return
	}
	for i := range want {
		if !strings.HasPrefix(causes[i], want[i]) {
			t.Errorf("%s: %q, want %q", what, causes[i], want[i])
		}
	}
}

// TestBindingClaimsNeedsARight: who may write the status of claims needs one more right to allocate and reserve them,
// with the verb of the request.
func TestBindingClaimsNeedsARight(t *testing.T) {
	c := startClaims(t)
	claim := c.create("a", "")
	claim.Status.Allocation = allocation("node")
	update := func(user string, claim *resourcev1.ResourceClaim) error {
		_, err := c.as(user, "").UpdateStatus(t.Context(), claim.DeepCopy(), metav1.UpdateOptions{})
		return err
	}
	at := "status.allocation: Forbidden: "
	mustRefuse(t, "allocated by a monitor", update(monitor, claim), at+fmt.Sprintf(claimBinding, monitor, "update"))
	mustRefuse(t, "allocated by the scheduler", update(scheduler, claim))

	_, err := c.as(scheduler, "").Patch(t.Context(), "a", types.MergePatchType,
		[]byte(`{"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}}`), metav1.PatchOptions{}, "status")
	mustRefuse(t, "reserved by a patch", err, at+fmt.Sprintf(claimBinding, scheduler, "patch"))
	_, err = c.as(monitor, "").Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}, "status")
	mustRefuse(t, "nothing of the status", err)

	// What is wrong with the status itself is said after what the user may not do.
	reserved := c.create("b", "")
	reserved.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}}
	mustRefuse(t, "reserved and not allocated", update(monitor, reserved), at+fmt.Sprintf(claimBinding, monitor, "update"),
		"status.reservedFor: Forbidden: may not be specified when `allocated` is not set")
}

// TestReportsOfDevicesNeedARight: reports about the devices of a driver need a right on the driver, from the claim's node
// or from anywhere.
func TestReportsOfDevicesNeedARight(t *testing.T) {
	c := startClaims(t)
	claim := c.create("a", "node")
	reported := report(claim, "driver.example.com")
	update := func(user, node string, claim *resourcev1.ResourceClaim) error {
		_, err := c.as(user, node).UpdateStatus(t.Context(), claim.DeepCopy(), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	refused := func(user, verbs, first, driver string) string {
		return "status.devices: Forbidden: " + fmt.Sprintf(claimReport, user, verbs, first, driver)
	}
	const arbitrary, both = "arbitrary-node:update", "associated-node:update arbitrary-node:update"
	mustRefuse(t, "on the claim's node", update(driver, "node", reported))
	mustRefuse(t, "on another node", update(driver, "other", reported), refused(driver, arbitrary, arbitrary, "driver.example.com"))
	mustRefuse(t, "without a node", update(driver, "", reported), refused(driver, arbitrary, arbitrary, "driver.example.com"))
	mustRefuse(t, "of the scheduler", update(scheduler, "", reported), refused(scheduler, arbitrary, arbitrary, "driver.example.com"))
	causes := refusals(t, "of another driver", update(driver, "node", report(claim, "other.example.com")))
	if len(causes) == 0 || !strings.HasPrefix(causes[0], refused(driver, both, "associated-node:update", "other.example.com")) {
		t.Errorf("of another driver: %q", causes)
	}

	patch := []byte(`{"status":{"devices":[{"driver":"driver.example.com","pool":"pool","device":"device"}]}}`)
	if _, err := c.as(monitor, "").Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("patched from anywhere: %v", err)
	}
	current, err := client.For[*resourcev1.ResourceClaim](c.Client).Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	silent := current.DeepCopy()
	silent.Status.Devices = nil
	mustRefuse(t, "taken away", update(monitor, "", silent), refused(monitor, arbitrary, arbitrary, "driver.example.com"))
	silent.Status.Allocation = nil // its reports go with it
	mustRefuse(t, "deallocated", update(scheduler, "", silent))
}

// TestClaimsWhereAllIsAllowed: the authorizer is what says who may bind claims and report devices.
func TestClaimsWhereAllIsAllowed(t *testing.T) {
	c := startClaims(t, func(c *server.Config) { c.AuthorizationModes = []string{"AlwaysAllow"} })
	claim := c.create("a", "")
	claim.Status.Allocation = allocation("node")
	if _, err := c.as(monitor, "").UpdateStatus(t.Context(), report(claim, "driver.example.com"), metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}
