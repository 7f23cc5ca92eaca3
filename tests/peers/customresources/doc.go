// Package customresources plays the same requests to Levelwire and to
// apiextensions' own server, which every kube-apiserver contains, and compares
// the answers: codes, reasons, messages, warnings and bodies. It has only tests.
package customresources
