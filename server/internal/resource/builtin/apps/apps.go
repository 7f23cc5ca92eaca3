// Package apps defines the workloads of the group apps.
package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := appsv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[appsv1.Deployment, appsv1.DeploymentList](gv, define.Kind{
			Name: "Deployment", Plural: "deployments", NameRuleForNew: true, ShortNames: []string{"deploy"}, Categories: define.InAll, Status: true, StatusKeeps: resource.MetadataLabels, Scale: deploymentScale(),
		}, deploymentRules()),
		define.Resource[appsv1.ReplicaSet, appsv1.ReplicaSetList](gv, define.Kind{
			Name: "ReplicaSet", Plural: "replicasets", NameRuleForNew: true, ShortNames: []string{"rs"}, Categories: define.InAll, Status: true, Scale: replicaSetScale(),
		}, replicaSetRules()),
		define.Resource[appsv1.StatefulSet, appsv1.StatefulSetList](gv, define.Kind{
			Name: "StatefulSet", Plural: "statefulsets", NameRule: apivalidation.NameIsDNSLabel, NameRuleForNew: true, ShortNames: []string{"sts"}, Categories: define.InAll, Status: true, Scale: statefulSetScale(),
		}, statefulSetRules()),
		define.Resource[appsv1.DaemonSet, appsv1.DaemonSetList](gv, define.Kind{
			Name: "DaemonSet", Plural: "daemonsets", NameRuleForNew: true, ShortNames: []string{"ds"}, Categories: define.InAll, Status: true,
		}, daemonSetRules()),
		define.Resource[appsv1.ControllerRevision, appsv1.ControllerRevisionList](gv, define.Kind{
			Name: "ControllerRevision", Plural: "controllerrevisions", NoGeneration: true,
		}, controllerRevisionRules()),
	}
}
