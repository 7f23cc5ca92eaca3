// Command kubectl is the kubectl of k8s.io/kubectl, in the version that go.mod names:
// the one that the tour of kubectl is taken with where none is installed. From
// this module's folder:
//
//	go build -o ../../bin/kubectl ./kubectl
package main

import (
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		util.CheckErr(err)
	}
}
