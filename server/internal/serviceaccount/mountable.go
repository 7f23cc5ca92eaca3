package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/podreference"
	"github.com/levelwire/levelwire/server/internal/registry"
)

// enforceMountable is the annotation of an account whose pods may refer only to the secrets that it lists.
const enforceMountable = "kubernetes.io/enforce-mountable-secrets"

// Validate is the hook that refuses a pod whose account does not exist, or that refers to what it may not.
// Admit refuses the same pods earlier, before anything else of them is looked at; here they are as webhooks
// have left them.
func (a *Accounts) Validate(ctx context.Context, q *registry.Request) error {
	pod := podOf(q)
	switch {
	case pod == nil:
		return nil
	case q.Operation == registry.Update && q.Subresource == "ephemeralcontainers":
		return a.validateEphemeral(ctx, q, pod)
	case q.Operation != registry.Create || q.Subresource != "":
		return nil
	case isMirror(pod):
		return refuseMirror(q, pod)
	}
	account, err := a.accountOf(ctx, q, pod)
	if err != nil {
		return err
	}
	return limitSecrets(q, pod, account)
}

// accountOf returns the account of a pod, which must have one that exists.
func (a *Accounts) accountOf(ctx context.Context, q *registry.Request, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	name := pod.Spec.ServiceAccountName
	if name == "" {
		return nil, q.Forbidden(fmt.Errorf("no service account specified for pod %s/%s", q.Namespace, pod.Name))
	}
	account, err := a.get(ctx, q.Namespace, name)
	if isTerminating(err) {
		return nil, q.Forbidden(fmt.Errorf("error looking up service account %s/%s: serviceaccount %q not found", q.Namespace, name, name))
	}
	return account, err
}

// refuseMirror refuses mirror pods that refer to an account or to secrets: a kubelet runs such a pod
// without having read it from the server.
func refuseMirror(q *registry.Request, pod *corev1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return q.Forbidden(errors.New("a mirror pod may not reference service accounts"))
	}
	hasSecrets := false
	podreference.Each(pod, func(resource, name string) {
		hasSecrets = hasSecrets || resource == podreference.Secrets && name != ""
	})
	if hasSecrets {
		return q.Forbidden(errors.New("a mirror pod may not reference secrets"))
	}
	for i := range pod.Spec.Volumes {
		projected := pod.Spec.Volumes[i].Projected
		if projected != nil && slices.ContainsFunc(projected.Sources, func(p corev1.VolumeProjection) bool { return p.ServiceAccountToken != nil }) {
			return q.Forbidden(errors.New("a mirror pod may not use ServiceAccountToken volume projections"))
		}
	}
	return nil
}

// limitSecrets refuses a new pod that refers to secrets that its account does not list, if the account
// enforces that.
func limitSecrets(q *registry.Request, pod *corev1.Pod, account *corev1.ServiceAccount) error {
	if !enforcesMountable(account) {
		return nil
	}
	if err := checkSecrets(&pod.Spec, account); err != nil {
		return q.Forbidden(err)
	}
	return nil
}

// validateEphemeral is limitSecrets for the ephemeral containers of a pod. Kubernetes says the same with a 500,
// but it is the client's mistake.
func (a *Accounts) validateEphemeral(ctx context.Context, q *registry.Request, pod *corev1.Pod) error {
	account, err := a.accountOf(ctx, q, pod)
	if err != nil || !enforcesMountable(account) {
		return err
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		if err := checkEnvironment("ephemeral container "+c.Name, c.Env, c.EnvFrom, account); err != nil {
			return q.Forbidden(err)
		}
	}
	return nil
}

// enforcesMountable reports whether an account limits the secrets of its pods. A value that is no boolean
// counts as false.
func enforcesMountable(account *corev1.ServiceAccount) bool {
	enforces, err := strconv.ParseBool(account.Annotations[enforceMountable])
	return err == nil && enforces
}

// checkSecrets returns what is wrong with the first reference that the account does not list. As in
// Kubernetes, volumes that only use a secret (projections, CSI) are not looked at.
func checkSecrets(spec *corev1.PodSpec, account *corev1.ServiceAccount) error {
	for i := range spec.Volumes {
		if source := spec.Volumes[i].Secret; source != nil && !lists(account, source.SecretName) {
			return notListed("volume with", source.SecretName, account)
		}
	}
	for _, list := range []struct {
		what       string
		containers []corev1.Container
	}{{"init container ", spec.InitContainers}, {"container ", spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			if err := checkEnvironment(list.what+c.Name, c.Env, c.EnvFrom, account); err != nil {
				return err
			}
		}
	}
	for i, ref := range spec.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, ref) {
			return errors.New("imagePullSecrets[" + strconv.Itoa(i) + `].name="` + ref.Name +
				`" is not allowed because service account ` + account.Name + " does not reference that imagePullSecret")
		}
	}
	return nil
}

// checkEnvironment is checkSecrets for the variables of a container, which what names.
func checkEnvironment(what string, env []corev1.EnvVar, from []corev1.EnvFromSource, account *corev1.ServiceAccount) error {
	for i := range env {
		if value := env[i].ValueFrom; value != nil && value.SecretKeyRef != nil && !lists(account, value.SecretKeyRef.Name) {
			return notListed(what+" with envVar "+env[i].Name+" referencing", value.SecretKeyRef.Name, account)
		}
	}
	for i := range from {
		if ref := from[i].SecretRef; ref != nil && !lists(account, ref.Name) {
			return notListed(what+" with envFrom referencing", ref.Name, account)
		}
	}
	return nil
}

// lists reports whether a secret is among those of an account.
func lists(account *corev1.ServiceAccount, secret string) bool {
	return slices.ContainsFunc(account.Secrets, func(ref corev1.ObjectReference) bool { return ref.Name == secret })
}

// notListed is in Kubernetes' words, which do not escape what the names contain.
func notListed(what, secret string, account *corev1.ServiceAccount) error {
	return errors.New(what + ` secret.secretName="` + secret + `" is not allowed because service account ` + account.Name +
		" does not reference that secret")
}
