// Package expressions is what the CEL expressions of admission have in common, whether they
// belong to a policy or to a webhook: match conditions, and the variables that show a
// request (object, oldObject, request, namespaceObject, authorizer). They are compiled and
// evaluated by package cel, within its limits.
package expressions
