package apiserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const services = "/api/v1/namespaces/default/services"

// balanced is a Service for which the server allocates all that it can, with more members of its spec, and of its port.
func balanced(spec, port string) string {
	return fmt.Sprintf(`{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"%s,`+
		`"ports":[{"name":"a","port":80,"protocol":"TCP"%s}]}}`, spec, port)
}

// allocated are the fields that the server fills in where no client has.
var allocated = []string{`"f:clusterIP"`, `"f:clusterIPs"`, `"f:ipFamilies"`, `"f:ipFamilyPolicy"`, `"f:nodePort"`, `"f:healthCheckNodePort"`}

// owners returns the managers that own an allocated field.
func owners(svc *corev1.Service) (names []string) {
	for _, entry := range svc.ManagedFields {
		for _, name := range allocated {
			if strings.Contains(entry.FieldsV1.GetRawString(), name) {
				names = append(names, entry.Manager+" "+name)
			}
		}
	}
	return names
}

// TestAllocatedFieldsConflictWithNobody: in whatever way a Service is written, what the server allocates
// has no owner, and another manager's apply of it, or of something else in its place, conflicts with none.
func TestAllocatedFieldsConflictWithNobody(t *testing.T) {
	for name, write := range map[string][]func(c *cluster){
		"created": {func(c *cluster) { c.send(201, "POST", services+"?fieldManager=first", balanced("", "")) }},
		"applied": {func(c *cluster) { c.send(201, "PATCH", services+"/s?fieldManager=first", balanced("", ""), applyYAML) }},
		"applied twice": {
			func(c *cluster) { c.send(201, "PATCH", services+"/s?fieldManager=first", balanced("", ""), applyYAML) },
			func(c *cluster) {
				c.send(200, "PATCH", services+"/s?fieldManager=first", balanced(`,"sessionAffinity":"ClientIP"`, ""), applyYAML)
			},
		},
		"created, and changed to another type": {
			func(c *cluster) {
				c.send(201, "POST", services+"?fieldManager=first", `{"metadata":{"name":"s"},"spec":{"ports":[{"name":"a","port":80}]}}`)
			},
			func(c *cluster) {
				c.send(200, "PATCH", services+"/s?fieldManager=first", `{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"}}`, merge)
			},
		},
		"replaced as it was read": {
			func(c *cluster) { c.send(201, "POST", services+"?fieldManager=first", balanced("", "")) },
			func(c *cluster) {
				read := string(c.send(200, "GET", services+"/s", "").body)
				c.send(200, "PUT", services+"/s?fieldManager=second", strings.Replace(read, `"sessionAffinity":"None"`, `"sessionAffinity":"ClientIP"`, 1))
			},
		},
		"replaced without them": {
			func(c *cluster) { c.send(201, "POST", services+"?fieldManager=first", balanced("", "")) },
			func(c *cluster) { c.send(200, "PUT", services+"/s?fieldManager=second", balanced("", "")) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newWritable(t)
			for _, f := range write {
				f(c)
			}
			var svc corev1.Service
			c.send(200, "GET", services+"/s", "").into(t, &svc)
			spec := svc.Spec
			if spec.ClusterIP == "" || len(spec.ClusterIPs) != 1 || spec.Ports[0].NodePort == 0 || spec.HealthCheckNodePort == 0 || len(spec.IPFamilies) != 1 || spec.IPFamilyPolicy == nil {
				t.Fatalf("not all is allocated: %+v", spec)
			}
			if got := owners(&svc); len(got) > 0 {
				t.Errorf("owned: %q", got)
			}
			const by = services + "/s?fieldManager=other"
			same := balanced(fmt.Sprintf(`,"clusterIP":%q,"clusterIPs":[%[1]q],"healthCheckNodePort":%d`, spec.ClusterIP, spec.HealthCheckNodePort), fmt.Sprintf(`,"nodePort":%d`, spec.Ports[0].NodePort))
			c.send(200, "PATCH", by, same, applyYAML)
			// What may change does; what may not is invalid, and no conflict.
			another := int32(30000)
			for another == spec.Ports[0].NodePort || another == spec.HealthCheckNodePort {
				another++
			}
			c.send(200, "PATCH", by, balanced("", fmt.Sprintf(`,"nodePort":%d`, another)), applyYAML)
			for member, says := range map[string]string{
				`,"clusterIP":"10.0.0.250"`:                         "spec.clusterIP",
				fmt.Sprintf(`,"healthCheckNodePort":%d`, another+1): "spec.healthCheckNodePort: Forbidden: field is immutable",
			} {
				if got := c.do(http.MethodPatch, by, balanced(member, ""), applyYAML); got.code != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), says) {
					t.Errorf("applied %s: %d %s", member, got.code, got.body)
				}
			}
		})
	}
}

// TestSecondFamilyIsRefused: a Service of a single family does not get another one that the server does not have.
func TestSecondFamilyIsRefused(t *testing.T) {
	c := newWritable(t)
	c.send(201, "POST", services, `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)
	for body, says := range map[string]string{
		`{"spec":{"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4","IPv6"]}}`: `spec.ipFamilies[1]: Invalid value: \"IPv6\": not configured on this cluster`,
		`{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`:                             `spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services`,
		`{"spec":{"ipFamilies":["IPv4","IPv6"]}}`:                                    `must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`,
	} {
		for _, kind := range []string{merge, applyYAML} {
			sent := body
			if kind == applyYAML {
				sent = strings.Replace(body, "{", `{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},`, 1)
			}
			if got := c.send(422, "PATCH", services+"/s?fieldManager=m", sent, kind); !strings.Contains(string(got.body), says) {
				t.Errorf("%s: %s", sent, got.body)
			}
		}
	}
	var svc corev1.Service
	c.send(200, "PATCH", services+"/s", `{"spec":{"ipFamilyPolicy":"PreferDualStack"}}`, merge).into(t, &svc)
	if len(svc.Spec.IPFamilies) != 1 || len(svc.Spec.ClusterIPs) != 1 {
		t.Errorf("where both are only preferred: %v %v", svc.Spec.IPFamilies, svc.Spec.ClusterIPs)
	}
}

// TestAppliedPortsKeepTheirNodePorts: a port of another number is another element of the list, and has its
// name's node port all the same.
func TestAppliedPortsKeepTheirNodePorts(t *testing.T) {
	c := newWritable(t)
	ports := func(text string) string {
		return `{"kind":"Service","apiVersion":"v1","metadata":{"name":"s"},"spec":{"type":"NodePort","ports":[` + text + `]}}`
	}
	for _, test := range []struct{ before, after string }{
		{`{"name":"a","port":80},{"name":"b","port":81}`, `{"name":"a","port":8080},{"name":"b","port":81}`},
		{`{"name":"a","port":80},{"name":"b","port":81}`, `{"name":"b","port":82},{"name":"a","port":83}`},
		{`{"port":80}`, `{"port":8080}`},
	} {
		var before, after corev1.Service
		c.send(201, "PATCH", services+"/s?fieldManager=m", ports(test.before), applyYAML).into(t, &before)
		c.send(200, "PATCH", services+"/s?fieldManager=m", ports(test.after), applyYAML).into(t, &after)
		had := map[string]int32{}
		for _, port := range before.Spec.Ports {
			had[port.Name] = port.NodePort
		}
		for _, port := range after.Spec.Ports {
			if port.NodePort == 0 || port.NodePort != had[port.Name] {
				t.Errorf("%s: port %q has node port %d, had %d", test.after, port.Name, port.NodePort, had[port.Name])
			}
		}
		if got := owners(&after); len(got) > 0 {
			t.Errorf("%s: owned: %q", test.after, got)
		}
		c.send(200, "DELETE", services+"/s", "")
	}
}
