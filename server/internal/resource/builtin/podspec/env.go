package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// envFields are the fields of a pod that a variable may show, and volumeFields
// those that a file of a downward volume may; labels and annotations are shown
// one by one in the one and also as a whole in the other.
var (
	envFields = sets.New("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
	volumeFields = sets.New("metadata.name", "metadata.namespace", "metadata.uid", "metadata.annotations", "metadata.labels")
	// hiddenFields are those that selectors know, and that cannot be shown.
	hiddenFields = sets.New("spec.restartPolicy", "spec.schedulerName", "status.phase")
)

// shownResources are the amounts of a container that can be shown to it.
var shownResources = sets.New("limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory", "requests.ephemeral-storage")

func validateEnv(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	for i, e := range c.Env {
		at := path.Child("env").Index(i)
		errs = append(errs, validate.RequiredSyntax(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName)...)
		if e.ValueFrom != nil {
			errs = append(errs, validateEnvSource(at.Child("valueFrom"), &e)...)
		}
	}
	for i, from := range c.EnvFrom {
		at := path.Child("envFrom").Index(i)
		if from.Prefix != "" {
			errs = append(errs, validate.Invalid(at.Child("prefix"), from.Prefix, validation.IsRelaxedEnvVarName(from.Prefix))...)
		}
		if from.ConfigMapRef != nil {
			errs = append(errs, validate.RequiredSyntax(at.Child("configMapRef", "name"), from.ConfigMapRef.Name, validation.IsDNS1123Subdomain)...)
		}
		if from.SecretRef != nil {
			errs = append(errs, validate.RequiredSyntax(at.Child("secretRef", "name"), from.SecretRef.Name, validation.IsDNS1123Subdomain)...)
		}
		switch {
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			errs = append(errs, field.Invalid(path.Child("envFrom"), "", "must specify one of: `configMapRef` or `secretRef`"))
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(path.Child("envFrom"), "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

func validateEnvSource(path *field.Path, e *corev1.EnvVar) field.ErrorList {
	var errs field.ErrorList
	from, sources := e.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		errs = append(errs, validateFieldRef(path.Child("fieldRef"), from.FieldRef, envFields)...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		errs = append(errs, validateResourceRef(path.Child("resourceFieldRef"), from.ResourceFieldRef, false)...)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		errs = append(errs, validateKeyRef(path.Child("configMapKeyRef"), from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key)...)
	}
	if from.SecretKeyRef != nil {
		sources++
		errs = append(errs, validateKeyRef(path.Child("secretKeyRef"), from.SecretKeyRef.Name, from.SecretKeyRef.Key)...)
	}
	if from.FileKeyRef != nil {
		sources++
		errs = append(errs, validateFileKeyRef(path.Child("fileKeyRef"), from.FileKeyRef)...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case e.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

// validateFileKeyRef checks a reference to a variable in a file (KEP-3721).
func validateFileKeyRef(path *field.Path, ref *corev1.FileKeySelector) field.ErrorList {
	errs := validate.RequiredSyntax(path.Child("key"), ref.Key, validation.IsRelaxedEnvVarName)
	errs = append(errs, validate.RequiredSyntax(path.Child("volumeName"), ref.VolumeName, validation.IsDNS1123Label)...)
	return append(errs, validate.NoParentDir(path.Child("path"), ref.Path)...)
}

// validateVariableFiles: files of variables are in volumes that nothing but the pod writes.
func validateVariableFiles(path *field.Path, spec *corev1.PodSpec) field.ErrorList {
	var errs field.ErrorList
	var volumes map[string]*corev1.Volume // of a pod that has such files
	check := func(at *field.Path, env []corev1.EnvVar) {
		for i := range env {
			if env[i].ValueFrom == nil || env[i].ValueFrom.FileKeyRef == nil {
				continue
			}
			if volumes == nil {
				volumes = make(map[string]*corev1.Volume, len(spec.Volumes))
				for i := range spec.Volumes {
					volumes[spec.Volumes[i].Name] = &spec.Volumes[i]
				}
			}
			name := env[i].ValueFrom.FileKeyRef.VolumeName
			at := at.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
			if volume := volumes[name]; volume == nil {
				errs = append(errs, field.NotFound(at, name))
			} else if volume.EmptyDir == nil {
				errs = append(errs, field.Invalid(at, name, "referenced volume must be of type emptyDir"))
			}
		}
	}
	for i := range spec.InitContainers {
		check(path.Child("initContainers").Index(i), spec.InitContainers[i].Env)
	}
	for i := range spec.Containers {
		check(path.Child("containers").Index(i), spec.Containers[i].Env)
	}
	for i := range spec.EphemeralContainers {
		check(path.Child("ephemeralContainers").Index(i), spec.EphemeralContainers[i].Env)
	}
	return errs
}

// validateKeyRef checks a reference to a key of a ConfigMap or Secret.
func validateKeyRef(path *field.Path, name, key string) field.ErrorList {
	errs := validate.Invalid(path.Child("name"), name, validation.IsDNS1123Subdomain(name))
	return append(errs, validate.RequiredSyntax(path.Child("key"), key, validation.IsConfigMapKey)...)
}

// validateFieldRef checks that a field may be shown to the pod's containers.
func validateFieldRef(path *field.Path, ref *corev1.ObjectFieldSelector, shown sets.Set[string]) field.ErrorList {
	at := path.Child("fieldPath")
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if version := ref.APIVersion; version != "" && version != "v1" {
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: unsupported pod version: "+version)}
	}
	base, key, subscripted := subscript(ref.FieldPath)
	switch {
	case subscripted && base == "metadata.labels":
		return validate.Invalid(path, key, validation.IsQualifiedName(key))
	case subscripted && base == "metadata.annotations":
		return annotationKey(path, key)
	case subscripted:
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label does not support subscript: "+ref.FieldPath)}
	case base == "spec.host": // what old clients call it
		base = "spec.nodeName"
	case !envFields.Has(base) && !volumeFields.Has(base) && !hiddenFields.Has(base):
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label not supported: "+ref.FieldPath)}
	}
	if !shown.Has(base) {
		return field.ErrorList{field.NotSupported(at, base, sets.List(shown))}
	}
	return nil
}

// annotationKey checks a key, in which upper case is allowed before the slash, too.
func annotationKey(path *field.Path, key string) field.ErrorList {
	key = strings.ToLower(key)
	return validate.Invalid(path, key, validation.IsQualifiedName(key))
}

// subscript splits metadata.labels['key'] into its parts.
func subscript(path string) (base, key string, ok bool) {
	base, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if base == "" || !found || !closed {
		return path, "", false
	}
	return base, key, true
}

// validateResourceRef checks a reference to a container's amounts. In a volume
// it must say whose.
func validateResourceRef(path *field.Path, ref *corev1.ResourceFieldSelector, inVolume bool) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("resource")
	switch amount := ref.Resource; {
	case inVolume && ref.ContainerName == "":
		errs = append(errs, field.Required(path.Child("containerName"), ""))
	case amount == "":
		errs = append(errs, field.Required(at, ""))
	case !shownResources.Has(amount) && !strings.HasPrefix(amount, "limits.hugepages-") && !strings.HasPrefix(amount, "requests.hugepages-"):
		errs = append(errs, field.NotSupported(at, amount, sets.List(shownResources)))
	}
	return append(errs, validateDivisor(path.Child("divisor"), ref)...)
}

// amountDivisors are the units in which bytes are shown.
var amountDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}

// validateDivisor checks the unit in which an amount is shown. The value in the error is kube-apiserver's.
func validateDivisor(path *field.Path, ref *corev1.ResourceFieldSelector) field.ErrorList {
	_, amount, _ := strings.Cut(ref.Resource, ".")
	allowed, words := amountDivisors, amount
	switch {
	case amount == "cpu":
		allowed = []string{"1m", "1"}
	case strings.HasPrefix(amount, "hugepages-"):
		words = "hugepages"
	case amount == "ephemeral-storage":
		words = "local ephemeral storage"
	case amount != "memory":
		return nil
	}
	if ref.Divisor.IsZero() || slices.Contains(allowed, ref.Divisor.String()) {
		return nil
	}
	list := strings.Join(allowed, ", ")
	if amount == "cpu" {
		list = "1m and 1"
	}
	return field.ErrorList{field.Invalid(path, ref.Resource, fmt.Sprintf("only divisor's values %s are supported with the %s resource", list, words))}
}
