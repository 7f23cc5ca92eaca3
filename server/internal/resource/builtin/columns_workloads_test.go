package builtin_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

func webTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:   []corev1.Container{{Name: "web", Image: "nginx:1"}, {Name: "log", Image: "fluent:2"}},
		NodeSelector: map[string]string{"disk": "ssd"},
	}}
}

func TestAppsRows(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	controller := createdAgo("web-1", time.Hour)
	controller.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Other", Name: "x"},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: ptr(true)},
	}
	runRows(t, []rowTest{
		{"deployment", &appsv1.Deployment{
			ObjectMeta: createdAgo("web", time.Hour),
			Spec:       appsv1.DeploymentSpec{Replicas: ptr(int32(3)), Selector: web, Template: webTemplate()},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 3, AvailableReplicas: 1},
		}, []any{"web", "2/3", int64(3), int64(1), "60m", "web,log", "nginx:1,fluent:2", "app=web"}},
		{"deployment scaled to zero", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: ptr(int32(0)), Selector: invalid}},
			[]any{"", "0/0", int64(0), int64(0), columns.Unknown, "", "", "<invalid>"}},
		{"replica set", &appsv1.ReplicaSet{
			ObjectMeta: createdAgo("web-5d", time.Hour),
			Spec:       appsv1.ReplicaSetSpec{Replicas: ptr(int32(3)), Selector: web, Template: webTemplate()},
			Status:     appsv1.ReplicaSetStatus{Replicas: 3, ReadyReplicas: 2},
		}, []any{"web-5d", int64(3), int64(3), int64(2), "60m", "web,log", "nginx:1,fluent:2", "app=web"}},
		{"stateful set", &appsv1.StatefulSet{
			ObjectMeta: createdAgo("db", time.Hour), Spec: appsv1.StatefulSetSpec{Template: webTemplate()},
			Status: appsv1.StatefulSetStatus{ReadyReplicas: 1},
		}, []any{"db", "1/1", "60m", "web,log", "nginx:1,fluent:2"}},
		{"daemon set", &appsv1.DaemonSet{
			ObjectMeta: createdAgo("agent", time.Hour), Spec: appsv1.DaemonSetSpec{Selector: web, Template: webTemplate()},
			Status: appsv1.DaemonSetStatus{
				DesiredNumberScheduled: 5, CurrentNumberScheduled: 4, NumberReady: 3, UpdatedNumberScheduled: 2, NumberAvailable: 1,
			},
		}, []any{"agent", int64(5), int64(4), int64(3), int64(2), int64(1), "disk=ssd", "60m", "web,log", "nginx:1,fluent:2", "app=web"}},
		{"controller revision", &appsv1.ControllerRevision{ObjectMeta: controller, Revision: 4},
			[]any{"web-1", "statefulset.apps/web", int64(4), "60m"}},
		{"controller revision alone", &appsv1.ControllerRevision{}, []any{"", columns.None, int64(0), columns.Unknown}},
	})
}

func TestJobRow(t *testing.T) {
	job := func(change func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: createdAgo("j", time.Hour), Spec: batchv1.JobSpec{Completions: ptr(int32(3))}}
		change(j)
		return j
	}
	holds := func(types ...batchv1.JobConditionType) []batchv1.JobCondition {
		var list []batchv1.JobCondition
		for _, typ := range types {
			list = append(list, batchv1.JobCondition{Type: typ, Status: corev1.ConditionTrue})
		}
		return list
	}
	started, ended := ago(time.Hour), ago(30*time.Minute)
	for _, test := range []struct {
		name   string
		change func(*batchv1.Job)
		want   []any
	}{
		{"new", func(*batchv1.Job) {}, []any{"j", "Running", "0/3", ""}},
		{"running", func(j *batchv1.Job) { j.Status.StartTime, j.Status.Succeeded = &started, 1 }, []any{"j", "Running", "1/3", "60m"}},
		{"complete", func(j *batchv1.Job) {
			j.Status = batchv1.JobStatus{
				StartTime: &started, CompletionTime: &ended, Succeeded: 3,
				Conditions: holds(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete),
			}
		}, []any{"j", "Complete", "3/3", "30m"}},
		{"failed", func(j *batchv1.Job) { j.Status.Conditions = holds(batchv1.JobFailureTarget, batchv1.JobFailed) }, []any{"j", "Failed", "0/3", ""}},
		{"failing", func(j *batchv1.Job) { j.Status.Conditions = holds(batchv1.JobFailureTarget) }, []any{"j", "FailureTarget", "0/3", ""}},
		{"succeeding", func(j *batchv1.Job) { j.Status.Conditions = holds(batchv1.JobSuccessCriteriaMet) }, []any{"j", "SuccessCriteriaMet", "0/3", ""}},
		{"suspended", func(j *batchv1.Job) { j.Status.Conditions = holds(batchv1.JobSuspended) }, []any{"j", "Suspended", "0/3", ""}},
		{"terminating", func(j *batchv1.Job) {
			j.DeletionTimestamp = &ended
			j.Status.Conditions = holds(batchv1.JobSuspended)
		}, []any{"j", "Terminating", "0/3", ""}},
		{"work queue", func(j *batchv1.Job) { j.Spec.Completions, j.Spec.Parallelism = nil, ptr(int32(4)) }, []any{"j", "Running", "0/1 of 4", ""}},
		{"one pod", func(j *batchv1.Job) { j.Spec.Completions = nil }, []any{"j", "Running", "0/1", ""}},
	} {
		t.Run(test.name, func(t *testing.T) { wantCells(t, cells(t, job(test.change))[:4], test.want...) })
	}
}

func TestCronJobRow(t *testing.T) {
	last := ago(2 * time.Minute)
	runRows(t, []rowTest{
		{"full", &batchv1.CronJob{
			ObjectMeta: createdAgo("c", time.Hour),
			Spec: batchv1.CronJobSpec{Schedule: "*/5 * * * *", TimeZone: ptr("Europe/Berlin"), Suspend: ptr(true),
				JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: webTemplate()}}},
			Status: batchv1.CronJobStatus{Active: make([]corev1.ObjectReference, 2), LastScheduleTime: &last},
		}, []any{"c", "*/5 * * * *", "Europe/Berlin", "True", int64(2), "2m", "60m", "web,log", "nginx:1,fluent:2", columns.None}},
		{"not suspended", &batchv1.CronJob{Spec: batchv1.CronJobSpec{Suspend: ptr(false)}},
			[]any{"", "", columns.None, "False", int64(0), columns.None, columns.Unknown, "", "", columns.None}},
		{"empty", &batchv1.CronJob{}, []any{"", "", columns.None, columns.Unset, int64(0), columns.None, columns.Unknown, "", "", columns.None}},
	})
}

func TestAutoscalingAndPolicyRows(t *testing.T) {
	runRows(t, []rowTest{
		{"v1", &autoscalingv1.HorizontalPodAutoscaler{
			ObjectMeta: createdAgo("h", time.Hour),
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "web"},
				MinReplicas:    ptr(int32(2)), MaxReplicas: 5, TargetCPUUtilizationPercentage: ptr(int32(80)),
			},
			Status: autoscalingv1.HorizontalPodAutoscalerStatus{CurrentReplicas: 3, CurrentCPUUtilizationPercentage: ptr(int32(40))},
		}, []any{"h", "Deployment/web", "cpu: 40%/80%", "2", int64(5), int64(3), "60m"}},
		{"v2", &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: createdAgo("h", time.Hour)},
			[]any{"h", "/", columns.None, columns.Unset, int64(0), int64(0), "60m"}},
		{"scale", &autoscalingv1.Scale{
			ObjectMeta: createdAgo("s", time.Hour), Spec: autoscalingv1.ScaleSpec{Replicas: 3},
			Status: autoscalingv1.ScaleStatus{Replicas: 2},
		}, []any{"s", int64(3), int64(2), "60m"}},
		{"budget", &policyv1.PodDisruptionBudget{
			ObjectMeta: createdAgo("b", time.Hour), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr(intstr.FromString("50%"))},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 2},
		}, []any{"b", "50%", "N/A", int64(2), "60m"}},
	})
}
