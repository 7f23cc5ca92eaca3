package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

func serviceAccountRules() define.Rules[*corev1.ServiceAccount] {
	return define.Rules[*corev1.ServiceAccount]{}
}
