// Package endpoints keeps, for each Service with a selector, the
// EndpointSlices that say which pods are behind it, and the Endpoints object
// that older clients read.
//
// desired.go works out what should be; slices.go fits it into the slices that
// exist with as few writes as possible.
package endpoints
