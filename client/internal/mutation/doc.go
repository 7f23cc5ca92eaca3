// Package mutation finds out that objects which must not change were changed: a
// [Detector] keeps a deep copy of each, compares, and names the field.
package mutation
