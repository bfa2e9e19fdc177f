"""How each verb is carried out."""
