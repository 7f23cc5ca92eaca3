package podspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

// projection checks a volume that is put together of others, in which no two files may have the
// same place.
type projection struct {
	path  *field.Path
	files sets.Set[string]
}

func validateProjected(path *field.Path, v *corev1.ProjectedVolumeSource) field.ErrorList {
	errs := fileMode(path.Child("defaultMode"), v.DefaultMode)
	errs = append(errs, fileUser(path.Child("defaultUser"), v.DefaultUser)...)
	p := &projection{path, sets.New[string]()}
	for i := range v.Sources {
		errs = append(errs, p.source(path.Child("sources").Index(i), &v.Sources[i])...)
	}
	return errs
}

// place takes the place of a file. value stands in the error if another one has it.
func (p *projection) place(file, value string) field.ErrorList {
	if p.files.Has(file) {
		return field.ErrorList{field.Invalid(p.path, value, "conflicting duplicate paths")}
	}
	p.files.Insert(file)
	return nil
}

// optionalPlace is place, with the checks of a file's name, for one that need not be there.
func (p *projection) optionalPlace(at *field.Path, file string) field.ErrorList {
	if file == "" {
		return nil
	}
	return append(fileName(at, file), p.place(file, file)...)
}

func (p *projection) source(at *field.Path, s *corev1.VolumeProjection) field.ErrorList {
	var errs field.ErrorList
	sources := 0
	items := func(at *field.Path, name string, list []corev1.KeyToPath) {
		sources++
		errs = append(errs, validate.Required(at.Child("name"), name)...)
		errs = append(errs, validateItems(at.Child("items"), list, func(file string) field.ErrorList { return p.place(file, name) })...)
	}
	if s.Secret != nil {
		items(at.Child("secret"), s.Secret.Name, s.Secret.Items)
	}
	if s.ConfigMap != nil {
		items(at.Child("configMap"), s.ConfigMap.Name, s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		sources++
		for i := range s.DownwardAPI.Items {
			file := &s.DownwardAPI.Items[i]
			errs = append(errs, validateDownwardFile(at.Child("downwardAPI"), file)...)
			if file.Path != "" {
				errs = append(errs, p.place(file.Path, file.Path)...)
			}
		}
	}
	if s.ServiceAccountToken != nil {
		sources++
		errs = append(errs, p.token(at.Child("serviceAccountToken"), s.ServiceAccountToken)...)
	}
	if s.ClusterTrustBundle != nil {
		sources++
		errs = append(errs, p.trustBundle(at.Child("clusterTrustBundle"), s.ClusterTrustBundle)...)
	}
	if s.PodCertificate != nil {
		sources++
		errs = append(errs, p.certificate(at.Child("podCertificate"), s.PodCertificate)...)
	}
	if sources > 1 {
		errs = append(errs, field.Forbidden(at, "may not specify more than 1 volume type per source"))
	}
	return errs
}

// The life of a token, in seconds.
const (
	minTokenSeconds int64 = 600
	maxTokenSeconds int64 = 1 << 32
)

func (p *projection) token(at *field.Path, s *corev1.ServiceAccountTokenProjection) field.ErrorList {
	var errs field.ErrorList
	seconds := at.Child("expirationSeconds")
	switch n := s.ExpirationSeconds; {
	case n == nil:
		errs = append(errs, field.Required(seconds, ""))
	case *n < minTokenSeconds:
		errs = append(errs, field.Invalid(seconds, *n, "may not specify a duration less than 10 minutes"))
	case *n > maxTokenSeconds:
		errs = append(errs, field.Invalid(seconds, *n, "may not specify a duration larger than 2^32 seconds"))
	}
	// The place is kube-apiserver's.
	errs = append(errs, validate.Required(p.path.Child("path"), s.Path)...)
	errs = append(errs, fileName(p.path.Child("path"), s.Path)...)
	return append(errs, fileUser(at.Child("user"), s.User)...)
}

func (p *projection) trustBundle(at *field.Path, s *corev1.ClusterTrustBundleProjection) field.ErrorList {
	var errs field.ErrorList
	switch {
	case s.Name != nil && s.SignerName != nil:
		errs = append(errs, field.Invalid(at, s, "only one of name and signerName may be used"))
	case s.Name != nil:
		if *s.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must be a valid object name"))
		}
		for _, message := range trustBundleName(*s.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), *s.Name, "not a valid clustertrustbundlename: "+message))
		}
		if s.LabelSelector != nil {
			errs = append(errs, field.Invalid(at.Child("labelSelector"), s.LabelSelector, "labelSelector must be unset if name is specified"))
		}
	case s.SignerName != nil:
		if *s.SignerName == "" {
			errs = append(errs, field.Required(at.Child("signerName"), "must be a valid signer name"))
		}
		errs = append(errs, validate.SignerName(at.Child("signerName"), *s.SignerName)...)
		errs = append(errs, validate.LabelSelector(at.Child("labelSelector"), s.LabelSelector)...)
	default:
		errs = append(errs, field.Required(at, "either name or signerName must be specified"))
	}
	errs = append(errs, validate.Required(at.Child("path"), s.Path)...)
	errs = append(errs, fileUser(at.Child("user"), s.User)...)
	errs = append(errs, fileName(at.Child("path"), s.Path)...)
	return append(errs, p.place(s.Path, s.Path)...)
}

// trustBundleName says what is wrong with the name of a ClusterTrustBundle. Those of a signer begin
// with its name, in which colons stand for slashes.
func trustBundleName(name string) []string {
	if colon := strings.LastIndexByte(name, ':'); colon >= 0 {
		name = name[colon+1:]
	}
	return apivalidation.NameIsDNSSubdomain(name, false)
}

var certificateKeyTypes = []string{"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}

// How long a certificate of a pod may be valid, in seconds.
const (
	minPodCertificateSeconds   int32 = 60 * 60
	maxPodCertificateSeconds   int32 = 91 * 24 * 60 * 60
	maxKubernetesSignerSeconds int32 = 24 * 60 * 60
)

func (p *projection) certificate(at *field.Path, s *corev1.PodCertificateProjection) field.ErrorList {
	errs := validate.SignerName(at.Child("signerName"), s.SignerName)
	annotations := at.Child("userAnnotations")
	for _, key := range slices.Sorted(maps.Keys(s.UserAnnotations)) {
		errs = append(errs, validation.IsDomainPrefixedKey(annotations, strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(s.UserAnnotations) != nil {
		errs = append(errs, field.TooLong(annotations, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	errs = append(errs, fileUser(at.Child("user"), s.User)...)
	if !slices.Contains(certificateKeyTypes, s.KeyType) {
		errs = append(errs, field.NotSupported(at.Child("keyType"), s.KeyType, certificateKeyTypes))
	}
	if n := s.MaxExpirationSeconds; n != nil {
		seconds, most := at.Child("maxExpirationSeconds"), maxPodCertificateSeconds
		if validate.IsKubernetesSigner(s.SignerName) {
			most = maxKubernetesSignerSeconds
		}
		if *n < minPodCertificateSeconds {
			errs = append(errs, field.Invalid(seconds, *n, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", minPodCertificateSeconds)))
		}
		if *n > most {
			errs = append(errs, field.Invalid(seconds, *n, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", most)))
		}
	}
	errs = append(errs, p.optionalPlace(at.Child("credentialBundlePath"), s.CredentialBundlePath)...)
	errs = append(errs, p.optionalPlace(at.Child("keyPath"), s.KeyPath)...)
	errs = append(errs, p.optionalPlace(at.Child("certificateChainPath"), s.CertificateChainPath)...)
	if s.CredentialBundlePath+s.KeyPath+s.CertificateChainPath == "" {
		errs = append(errs, field.Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"))
	}
	return errs
}
