// Package openapi describes the served kinds in OpenAPI: version 3, one
// document per group and version, and version 2, one document of everything.
// Clients take from them what a field means and whether it exists (kubectl
// explain, validation), which query parameters a verb knows, and how lists of a
// strategic merge patch are merged.
//
// Schemas of built-in kinds are read off their Go types, at the first request
// for them: names and presence from the json tags, descriptions from the
// SwaggerDoc methods, merge keys from the patch tags. What the types do not say
// is in tables: presence.go and enums.go, which a test holds against the
// sources of k8s.io/api, merge.go and package mergestrategy, which a test holds
// against the schema by which client-go merges. Schemas of custom kinds come
// with their resource.
//
// Reading order: endpoint.go (what is described), models.go, fields.go
// and merge.go (schemas), custom.go and truncate.go, paths.go, operations.go and parameters.go (verbs),
// document.go (version 3), swagger.go (version 2).
package openapi
