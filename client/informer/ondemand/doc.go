// Package ondemand reads whole objects where a program watches metadata only: a
// [Reader] fetches an object when it is asked for, keeps it for a while, and knows
// from the informer of metadata whether what it keeps is still the object's state.
package ondemand
