package builtin

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func appsResources() []*resource.Resource {
	gv := appsv1.SchemeGroupVersion
	return []*resource.Resource{
		define[appsv1.Deployment, appsv1.DeploymentList](gv, kind{
			Name: "Deployment", Plural: "deployments", ShortNames: []string{"deploy"}, Categories: inAll, Status: true, Scale: deploymentScale(),
		}, deploymentRules()),
		define[appsv1.ReplicaSet, appsv1.ReplicaSetList](gv, kind{
			Name: "ReplicaSet", Plural: "replicasets", ShortNames: []string{"rs"}, Categories: inAll, Status: true, Scale: replicaSetScale(),
			Fields: []resource.Field{selectableOr("status.replicas", "0")},
		}, replicaSetRules()),
		define[appsv1.StatefulSet, appsv1.StatefulSetList](gv, kind{
			Name: "StatefulSet", Plural: "statefulsets", ShortNames: []string{"sts"}, Categories: inAll, Status: true, Scale: statefulSetScale(),
		}, statefulSetRules()),
		define[appsv1.DaemonSet, appsv1.DaemonSetList](gv, kind{
			Name: "DaemonSet", Plural: "daemonsets", ShortNames: []string{"ds"}, Categories: inAll, Status: true,
		}, daemonSetRules()),
		define[appsv1.ControllerRevision, appsv1.ControllerRevisionList](gv, kind{
			Name: "ControllerRevision", Plural: "controllerrevisions", NoGeneration: true,
		}, controllerRevisionRules()),
	}
}
