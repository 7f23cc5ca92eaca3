package main

import (
	"fmt"
	"strings"
)

// tourDefinition defines a kind of its own for each namespace's tour.
const tourDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ovens.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: ovens, singular: oven, kind: Oven, shortNames: [ov], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.trays, statusReplicasPath: .status.trays}}
    additionalPrinterColumns: [{name: Trays, type: integer, jsonPath: .spec.trays}]
    schema:
      openAPIV3Schema:
        type: object
        description: Bakes.
        properties:
          spec:
            type: object
            required: [trays]
            properties:
              trays: {type: integer, minimum: 1, description: How many trays fit.}
              heat: {type: string, default: gentle, enum: [gentle, fierce]}
          status: {type: object, properties: {trays: {type: integer}}}
`

const tourOven = "apiVersion: GROUP/v1\nkind: Oven\nmetadata: {name: big}\nspec: {trays: 2}\n"

// customTour defines a kind, uses it in each way, and takes it away.
func (k *kubectl) customTour() {
	k.t.Helper()
	group := k.namespace + ".example.com"
	in := func(manifest string) string { return strings.ReplaceAll(manifest, "GROUP", group) }
	definition, oven := k.file("definition.yaml", in(tourDefinition)), k.file("oven.yaml", in(tourOven))
	resource := "ovens." + group
	k.run("apply", "-f", definition)
	k.run("wait", "--for=condition=Established", "crd/"+resource, "--timeout=3m")
	k.shows([]string{`^oven.` + group + `/big created$`}, "apply", "-f", oven)
	k.shows([]string{`unchanged$`}, "apply", "-f", oven)
	k.shows([]string{`^NAME +TRAYS$`, `^big +2$`}, "get", resource)
	k.shows([]string{`^ +heat: gentle$`}, "get", "ov."+group, "-o", "yaml")
	k.shows([]string{`oven.` + group + `/big`}, "get", "all")
	k.shows([]string{`^Kind: +Oven$`, `Trays: +2$`}, "describe", resource, "big")
	k.shows([]string{`^KIND: +Oven$`, `How many trays fit`}, "explain", resource+".spec")

	k.refused("unknown field", "apply", "--dry-run=server", "-f", k.file("oven.yaml", strings.Replace(in(tourOven), "trays", "trayz", 1)))
	k.refused("should be greater than or equal to 1", "patch", resource, "big", "--type=merge", "-p", `{"spec":{"trays":0}}`)
	k.refused(`supported values: "gentle", "fierce"`, "patch", resource, "big", "--type=merge", "-p", `{"spec":{"heat":"none"}}`)
	k.run("patch", resource, "big", "--type=json", "-p", `[{"op":"replace","path":"/spec/heat","value":"fierce"}]`)
	k.refused("the body of the request was in an unknown format", "patch", resource, "big", "--type=strategic", "-p", `{"spec":{"trays":1}}`)
	k.run("patch", resource, "big", "--subresource=status", "--type=merge", "-p", `{"status":{"trays":1}}`)
	k.shows([]string{`^big +3 +1 `}, "get", resource, "big", "--subresource=status", "-o", `jsonpath={.metadata.name}  3  {.status.trays} {"\n"}`)
	k.run("scale", resource, "big", "--replicas=4")
	k.shows([]string{`^big +4$`}, "get", resource)
	k.edit("s/trays: 4/trays: 5/", resource, "big")
	k.run("label", resource, "big", "a=b")
	k.run("annotate", resource, "big", "a=b")
	k.differs(`+  trays: 2`, "diff", "-f", oven)
	k.refused("conflict", "apply", "--server-side", "--field-manager=other", "-f", oven)
	k.shows([]string{`serverside-applied$`}, "apply", "--server-side", "--force-conflicts", "-f", oven)
	k.shows([]string{`^big +2$`}, "get", resource)

	k.run("delete", "crd", resource)
	converge(k.ctx, k.t, func() error { // a moment after its definition is gone
		if out, err := k.try("get", resource); err == nil || !strings.Contains(out, "the server doesn't have a resource type") {
			return fmt.Errorf("a kind whose definition is gone: %v\n%s", err, out)
		}
		return nil
	})
}
