package openapi

import (
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// enums returns the values that a type of constants may take, which reflection
// cannot see. Only types whose source calls them an enumeration are here:
// clients may take the values for complete.
func enums() map[reflect.Type][]any {
	return joined(
		values(apiextensionsv1.FieldValueRequired, apiextensionsv1.FieldValueForbidden, apiextensionsv1.FieldValueInvalid, apiextensionsv1.FieldValueDuplicate),

		// These constants are conversions, and so without a type in the source.
		values(discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN),
		values(networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific),
		values(resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll),

		values(admissionregistrationv1.Ignore, admissionregistrationv1.Fail),
		values(admissionregistrationv1.Exact, admissionregistrationv1.Equivalent),
		values(admissionregistrationv1.OperationAll, admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete, admissionregistrationv1.Connect),
		values(admissionregistrationv1.PatchTypeApplyConfiguration, admissionregistrationv1.PatchTypeJSONPatch),
		values(admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy),
		values(admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope, admissionregistrationv1.AllScopes),
		values(admissionregistrationv1.SideEffectClassUnknown, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassSome, admissionregistrationv1.SideEffectClassNoneOnDryRun),
		values(admissionregistrationv1.Deny, admissionregistrationv1.Warn, admissionregistrationv1.Audit),
		values(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType),
		values(appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType),
		values(appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement),
		values(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType, appsv1.RecreateStatefulSetStrategyType),
		values(autoscalingv1.ObjectMetricSourceType, autoscalingv1.PodsMetricSourceType, autoscalingv1.ResourceMetricSourceType, autoscalingv1.ContainerResourceMetricSourceType, autoscalingv1.ExternalMetricSourceType),
		values(batchv1.NonIndexedCompletion, batchv1.IndexedCompletion),
		values(batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent),
		values(batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount),
		values(batchv1.PodFailurePolicyOnExitCodesOpIn, batchv1.PodFailurePolicyOnExitCodesOpNotIn),
		values(batchv1.TerminatingOrFailed, batchv1.Failed),
		values(certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign, certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping, certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC),
		values(corev1.AppArmorProfileTypeUnconfined, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeLocalhost),
		values(corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite),
		values(corev1.AzureSharedBlobDisk, corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk),
		values(corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible),
		values(corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone),
		values(corev1.GRPCProbeModePlaintext, corev1.GRPCProbeModeTLS),
		values(corev1.HTTPProtocolHTTP1, corev1.HTTPProtocolHTTP2),
		values(corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory, corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev),
		values(corev1.IPv4Protocol, corev1.IPv6Protocol, corev1.IPFamilyUnknown),
		values(corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack),
		values(corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional),
		values(corev1.NamespaceActive, corev1.NamespaceTerminating),
		values(corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor),
		values(corev1.NodePending, corev1.NodeRunning, corev1.NodeTerminated),
		values(corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt),
		values(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod),
		values(corev1.PersistentVolumeClaimModifyVolumePending, corev1.PersistentVolumeClaimModifyVolumeInProgress, corev1.PersistentVolumeClaimModifyVolumeInfeasible),
		values(corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost),
		values(corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem),
		values(corev1.VolumePending, corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeFailed),
		values(corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain),
		values(corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways),
		values(corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown),
		values(corev1.PodQOSGuaranteed, corev1.PodQOSBurstable, corev1.PodQOSBestEffort),
		values(corev1.PreemptLowerPriority, corev1.PreemptNever),
		values(corev1.DefaultProcMount, corev1.UnmaskedProcMount),
		values(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP),
		values(corev1.PullAlways, corev1.PullNever, corev1.PullIfNotPresent),
		values(corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeVolumeAttributesClass),
		values(corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever),
		values(corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist),
		values(corev1.SeccompProfileTypeUnconfined, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost),
		values(corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone),
		values(corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal),
		values(corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal),
		values(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName),
		values(corev1.SIGABRT, corev1.SIGALRM, corev1.SIGBUS, corev1.SIGCHLD, corev1.SIGCLD, corev1.SIGCONT, corev1.SIGFPE, corev1.SIGHUP, corev1.SIGILL, corev1.SIGINT, corev1.SIGIO, corev1.SIGIOT, corev1.SIGKILL, corev1.SIGPIPE, corev1.SIGPOLL, corev1.SIGPROF, corev1.SIGPWR, corev1.SIGQUIT, corev1.SIGSEGV, corev1.SIGSTKFLT, corev1.SIGSTOP, corev1.SIGSYS, corev1.SIGTERM, corev1.SIGTRAP, corev1.SIGTSTP, corev1.SIGTTIN, corev1.SIGTTOU, corev1.SIGURG, corev1.SIGUSR1, corev1.SIGUSR2, corev1.SIGVTALRM, corev1.SIGWINCH, corev1.SIGXCPU, corev1.SIGXFSZ, corev1.SIGRTMIN, corev1.SIGRTMINPLUS1, corev1.SIGRTMINPLUS2, corev1.SIGRTMINPLUS3, corev1.SIGRTMINPLUS4, corev1.SIGRTMINPLUS5, corev1.SIGRTMINPLUS6, corev1.SIGRTMINPLUS7, corev1.SIGRTMINPLUS8, corev1.SIGRTMINPLUS9, corev1.SIGRTMINPLUS10, corev1.SIGRTMINPLUS11, corev1.SIGRTMINPLUS12, corev1.SIGRTMINPLUS13, corev1.SIGRTMINPLUS14, corev1.SIGRTMINPLUS15, corev1.SIGRTMAXMINUS14, corev1.SIGRTMAXMINUS13, corev1.SIGRTMAXMINUS12, corev1.SIGRTMAXMINUS11, corev1.SIGRTMAXMINUS10, corev1.SIGRTMAXMINUS9, corev1.SIGRTMAXMINUS8, corev1.SIGRTMAXMINUS7, corev1.SIGRTMAXMINUS6, corev1.SIGRTMAXMINUS5, corev1.SIGRTMAXMINUS4, corev1.SIGRTMAXMINUS3, corev1.SIGRTMAXMINUS2, corev1.SIGRTMAXMINUS1, corev1.SIGRTMAX),
		values(corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict),
		values(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		values(corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError),
		values(corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpLt, corev1.TolerationOpGt),
		values(corev1.URISchemeHTTP, corev1.URISchemeHTTPS),
		values(corev1.DoNotSchedule, corev1.ScheduleAnyway),
		values(corev1.VolumeHealthInaccessible, corev1.VolumeHealthDataLoss, corev1.VolumeHealthDegraded),
		values(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress),
		values(policyv1.IfHealthyBudget, policyv1.AlwaysAllow),
		values(resourcev1.AllocationConfigSourceClass, resourcev1.AllocationConfigSourceClaim),
		values(resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNoExecute),
		values(resourcev1.DeviceTolerationOpExists, resourcev1.DeviceTolerationOpEqual),
		values(resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources, resourcev1.SkipNodeOperationAll),
		values(storagev1.StorageUnreachable, storagev1.StorageDegraded),
		values(storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer),
	)
}

// enum is one type with its values.
type enum struct {
	of     reflect.Type
	values []any
}

func values[T ~string](constants ...T) enum {
	e := enum{of: reflect.TypeFor[T]()}
	for _, c := range constants {
		e.values = append(e.values, string(c))
	}
	slices.SortFunc(e.values, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return e
}

func joined(all ...enum) map[reflect.Type][]any {
	table := make(map[reflect.Type][]any, len(all))
	for _, e := range all {
		table[e.of] = e.values
	}
	return table
}
