package discovery

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/validate"
)

const (
	maxSliceEndpoints    = 1000
	maxSlicePorts        = 20000
	maxEndpointAddresses = 100
	maxTopologyLabels    = 16
	maxHints             = 8
)

var addressTypePath = field.NewPath("addressType")

// validateEndpointSlice checks a slice; old is nil for a new one. Endpoints that an update leaves
// as they are, are not checked: older versions of Kubernetes allowed more. What a type of addresses
// may be is in the tags of the API's type, and so reported last, but not of one that has changed into
// another, of which the tags say no more.
func validateEndpointSlice(s, old *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	addressType := validate.OneOf(addressTypePath, s.AddressType, discoveryv1.AddressTypeFQDN, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)
	if old != nil && s.AddressType != "" {
		errs, addressType = addressType, nil
	}
	errs = append(errs, validatePorts(field.NewPath("ports"), s.Ports)...)
	endpoints, changed := field.NewPath("endpoints"), old == nil || !equality.Semantic.DeepEqual(s.Endpoints, old.Endpoints)
	if n := len(s.Endpoints); changed && n > maxSliceEndpoints {
		errs = append(errs, field.TooMany(endpoints, n, maxSliceEndpoints))
	} else if changed {
		for i := range s.Endpoints {
			errs = append(errs, validateEndpoint(endpoints.Index(i), &s.Endpoints[i], s)...)
		}
	}
	errs = append(errs, addressType...)
	if old != nil {
		errs = append(errs, validate.UnchangedUnsaid(addressTypePath, s.AddressType, old.AddressType)...)
	}
	if changed {
		errs = append(errs, validateCounts(endpoints, s.Endpoints)...)
	}
	return errs
}

// validateCounts are rules that kube-apiserver has in the tags of the API's types. It reports what
// they refuse last.
func validateCounts(path *field.Path, endpoints []discoveryv1.Endpoint) field.ErrorList {
	var errs field.ErrorList
	for i := range endpoints {
		addresses := path.Index(i).Child("addresses")
		switch n := len(endpoints[i].Addresses); {
		case n == 0:
			errs = append(errs, field.Required(addresses, ""))
		case n > maxEndpointAddresses:
			errs = append(errs, field.TooMany(addresses, n, maxEndpointAddresses))
		}
	}
	return errs
}

func validateEndpoint(path *field.Path, e *discoveryv1.Endpoint, of *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	for i, address := range e.Addresses {
		errs = append(errs, validateAddress(path.Child("addresses"), i, address, of)...)
	}
	if e.NodeName != nil {
		errs = append(errs, validate.Invalid(path.Child("nodeName"), *e.NodeName, validation.IsDNS1123Subdomain(*e.NodeName))...)
	}
	if n := len(e.DeprecatedTopology); n > maxTopologyLabels {
		errs = append(errs, field.TooMany(path.Child("deprecatedTopology"), n, maxTopologyLabels))
	}
	errs = append(errs, metavalidation.ValidateLabels(e.DeprecatedTopology, path.Child("deprecatedTopology"))...)
	if e.Hostname != nil {
		errs = append(errs, validate.Invalid(path.Child("hostname"), *e.Hostname, validation.IsDNS1123Label(*e.Hostname))...)
	}
	if e.Hints != nil {
		errs = append(errs, validateHints(path.Child("hints"), e.Hints)...)
	}
	return errs
}

// validateAddress checks the address at an index. One of another IP family is reported at the
// list, as kube-apiserver does. Those of an unknown type are not checked.
func validateAddress(list *field.Path, i int, address string, of *discoveryv1.EndpointSlice) field.ErrorList {
	var errs field.ErrorList
	at, wrongFamily := list.Index(i), ""
	switch of.AddressType {
	case discoveryv1.AddressTypeIPv4:
		errs, wrongFamily = validate.IP(at, address), "must be an IPv4 address"
	case discoveryv1.AddressTypeIPv6:
		errs, wrongFamily = validation.IsValidIP(at, address), "must be an IPv6 address"
	case discoveryv1.AddressTypeFQDN:
		return validation.IsFullyQualifiedDomainName(at, address)
	default:
		return nil
	}
	if len(errs) > 0 {
		return errs
	}
	ip, _ := netip.ParseAddr(address) // the checks before let only such through
	if ip.Unmap().Is4() != (of.AddressType == discoveryv1.AddressTypeIPv4) {
		errs = append(errs, field.Invalid(list, address, wrongFamily))
	}
	if ip.IsLoopback() && validate.IsOwnSlice(of.Namespace, of.Name) {
		return errs
	}
	return append(errs, validate.EndpointIP(at, address)...)
}

func validatePorts(path *field.Path, ports []discoveryv1.EndpointPort) field.ErrorList {
	if n := len(ports); n > maxSlicePorts {
		return field.ErrorList{field.TooMany(path, n, maxSlicePorts)}
	}
	var errs field.ErrorList
	names := sets.New[string]()
	for i, p := range ports {
		at, name := path.Index(i), define.ValueOr(p.Name, "")
		if name != "" {
			errs = append(errs, validate.Invalid(at.Child("name"), name, validation.IsDNS1123Label(name))...)
		}
		if names.Has(name) {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names.Insert(name)
		errs = append(errs, validate.Supported(at.Child("protocol"), define.ValueOr(p.Protocol, ""), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		if p.AppProtocol != nil {
			errs = append(errs, validate.Invalid(at.Child("appProtocol"), *p.AppProtocol, validation.IsQualifiedName(*p.AppProtocol))...)
		}
	}
	return errs
}

func validateHints(path *field.Path, hints *discoveryv1.EndpointHints) field.ErrorList {
	zones, nodes := make([]string, len(hints.ForZones)), make([]string, len(hints.ForNodes))
	for i, zone := range hints.ForZones {
		zones[i] = zone.Name
	}
	for i, node := range hints.ForNodes {
		nodes[i] = node.Name
	}
	errs, ok := validateNames(path.Child("forZones"), zones, validation.IsValidLabelValue)
	if !ok {
		return errs
	}
	more, _ := validateNames(path.Child("forNodes"), nodes, validation.IsDNS1123Subdomain)
	return append(errs, more...)
}

// validateNames checks the names that one sort of hints has. ok is false if they are too many:
// kube-apiserver looks no further then.
func validateNames(path *field.Path, names []string, syntax func(string) []string) (errs field.ErrorList, ok bool) {
	if n := len(names); n > maxHints {
		return field.ErrorList{field.TooMany(path, n, maxHints)}, false
	}
	for i, name := range names {
		at := path.Index(i).Child("name")
		if slices.Contains(names[:i], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
		errs = append(errs, validate.Invalid(at, name, syntax(name))...)
	}
	return errs, true
}
