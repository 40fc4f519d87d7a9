/** Progress as a ring, and in words for those who do not see it. */
export function Ring({ percent, size = 40 }: { percent: number; size?: number }) {
  const value = Math.min(100, Math.max(0, percent));
  const radius = size / 2 - 3;
  const around = 2 * Math.PI * radius;
  return (
    <span className="ring" role="img" aria-label={`${Math.round(value)} percent done`}>
      <svg width={size} height={size} viewBox={`0 0 ${size} ${size}`} aria-hidden="true">
        <circle cx={size / 2} cy={size / 2} r={radius} className="ring-way" />
        <circle cx={size / 2} cy={size / 2} r={radius} className="ring-done" strokeDasharray={`${(around * value) / 100} ${around}`} transform={`rotate(-90 ${size / 2} ${size / 2})`} />
        <text x="50%" y="50%" dominantBaseline="central" textAnchor="middle">{Math.round(value)}</text>
      </svg>
    </span>
  );
}
