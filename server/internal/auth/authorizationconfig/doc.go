// Package authorizationconfig decides by a file of the kind AuthorizationConfiguration
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization):
// which authorizers are asked, in which order, and which webhooks under which
// conditions. Another file takes the place of the former one while the server runs.
package authorizationconfig
